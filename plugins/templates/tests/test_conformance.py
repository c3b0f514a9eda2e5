"""The command passes the tests that every command passes."""

from sideband_testing.conformance import CommandConformance


class TestNew(CommandConformance):
    plugin = "command.new"
    max_modules = 60
