"""The plugins of this package pass the tests that every plugin of their kind passes."""

from sideband_testing.conformance import CommandConformance


class TestRecordCommand(CommandConformance):
    plugin = "command.record"


class TestReplayCommand(CommandConformance):
    plugin = "command.replay"
