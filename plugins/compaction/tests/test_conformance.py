"""The plugin passes the tests that every hook plugin passes."""

from sideband_testing.conformance import HookConformance


class TestCompaction(HookConformance):
    plugin = "hook.compaction"
    config = {"strategy": "window"}  # the default asks a model, which the conversation of the example does not have
    max_modules = 40
