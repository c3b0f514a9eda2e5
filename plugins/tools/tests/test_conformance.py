"""The tools pass the tests that every tool passes."""

from sideband_testing.conformance import Example, ToolConformance


class TestOutput(ToolConformance):
    plugin = "tool.output"
    examples = (Example("output", {"handle": "none"}, error="none"),)


class TestSkill(ToolConformance):
    plugin = "tool.skill"
    examples = (Example("skill", {"name": "none"}, error="none"),)


class TestSubagent(ToolConformance):
    plugin = "tool.subagent"


class TestTools(ToolConformance):
    plugin = "tool.tools"
    examples = (
        Example("fetch", {"url": "example.org"}, error="is not a complete URL"),
        Example("search", {"query": "stars"}, error="no search service is configured"),
        Example("todo", {"add": ["read it"]}),
        Example("ask", {"questions": [{"text": "Which port?"}]}, error="no user can be asked"),
        Example("history", {"action": "search", "query": "stars"}),
        Example("memory", {"action": "write", "name": "build"}, error="`write` needs `text`"),
        Example("image", {"path": "/elsewhere/a.png", "question": "What is it?"}, error="is outside of the folders"),
    )
