"""The plugin passes the tests that every hook plugin and every tool passes."""

from sideband.hooks import ToolCall
from sideband_testing.conformance import Example, GuardConformance, HookConformance, ToolConformance


class TestPrompt(HookConformance):
    plugin = "hook.prompt"
    max_modules = 60


class TestCommandTools(GuardConformance):
    plugin = "guard.command-tools"
    allows = (ToolCall("c1", "notes.read", {}),)


class TestPromptTools(ToolConformance):
    plugin = "tool.prompt"
    max_modules = 60
    examples = (
        Example("prompt.memory", {"action": "add", "text": "likes tea"}),
        Example("prompt.knowledge", {"action": "list"}),
    )
