"""The plugin passes the tests that every hook plugin and every tool passes."""

from sideband_testing.conformance import Example, HookConformance, ToolConformance


class TestPrompt(HookConformance):
    plugin = "hook.prompt"
    max_modules = 60


class TestPromptTools(ToolConformance):
    plugin = "tool.prompt"
    max_modules = 60
    examples = (
        Example("prompt.memory", {"action": "add", "text": "likes tea"}),
        Example("prompt.knowledge", {"action": "list"}),
    )
