"""The plugin passes the tests that every plugin of its kind passes."""

from sideband_testing.conformance import CommandConformance


class TestAcpCommand(CommandConformance):
    plugin = "command.acp"
