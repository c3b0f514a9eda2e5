"""The plugin passes the tests that every hook plugin and every tool passes."""

from sideband.hooks import ToolCandidate, ToolSelection
from sideband_testing.conformance import Example, HookConformance, ToolConformance

MANY = [
    ToolCandidate("tool_expand_tools", "Get tools.", "plugin tool-selection", tokens=90),
    *(ToolCandidate(f"work_{number}", "Work.", "plugin work", tokens=40) for number in range(30)),
]


class TestToolSelection(HookConformance):
    plugin = "hook.tool-selection"
    max_modules = 40
    events = (ToolSelection(MANY, messages=[{"role": "user", "content": "work 7"}], tokens=10_000),)


class TestToolExpandTools(ToolConformance):
    plugin = "tool.tool-selection"
    max_modules = 40
    examples = (
        Example("tool_expand_tools", {"tool_names": []}),
        Example(
            "tool_expand_tools", {"tool_names": ["unknown"], "query": "work"}, error='"invalid_tools": ["unknown"]'
        ),
    )
