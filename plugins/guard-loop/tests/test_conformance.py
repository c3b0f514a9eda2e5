"""The plugin passes the tests that every guard passes."""

from sideband.hooks import ToolCall, ToolResult
from sideband_testing.conformance import GuardConformance


def repeated(times):
    for number in range(times):
        yield ToolCall(f"c{number}", "notes.read", {"name": "a"})
        yield ToolResult(f"c{number}", "notes.read", {"name": "a"}, "the same", is_error=True)


class TestLoopGuard(GuardConformance):
    plugin = "guard.guard-loop"
    max_modules = 30
    allows = (ToolCall("c1", "notes.read", {"name": "a"}),)
    turns = (*repeated(5), ToolCall("c9", "notes.read", {"name": "a"}))
