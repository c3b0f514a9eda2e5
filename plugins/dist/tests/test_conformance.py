"""The command passes the tests that every command passes."""

from sideband_testing.conformance import CommandConformance


class TestDist(CommandConformance):
    plugin = "command.dist"
    max_modules = 60
