"""The plugins pass the tests that every plugin of their kind passes."""

import pytest
from sideband_testing.conformance import (
    CommandConformance,
    Example,
    HookConformance,
    OpFamilyConformance,
    ToolSourceConformance,
)

NONE = "0" * 64
UNKNOWN = {"server": "none", "catalog": NONE}


class TestMcpOps(OpFamilyConformance):
    plugin = "op.mcp"
    examples = (
        # Calls of a server need a program in isolation, or a server at an address, as in the other tests.
        Example("mcp.call", {**UNKNOWN, "tool": "go"}, error="mcp.unknown"),
        Example("mcp.read", {**UNKNOWN, "uri": "notes://today"}, error="mcp.unknown"),
        Example("mcp.resources", UNKNOWN, error="mcp.unknown"),
        Example("mcp.prompts", UNKNOWN, error="mcp.unknown"),
        Example("mcp.prompt", {**UNKNOWN, "name": "plan"}, error="mcp.unknown"),
    )


class TestMcpServers(ToolSourceConformance):
    plugin = "tool.mcp"
    also = ("op.mcp",)
    source = "things"

    @pytest.fixture(autouse=True)
    def server(self, served, monkeypatch):
        config = {"servers": {"things": {"url": served.origin + "/mcp", "local": True}}}
        monkeypatch.setattr(type(self), "config", config)


class TestMcpInput(HookConformance):
    plugin = "hook.mcp"


class TestMcpCommands(CommandConformance):
    plugin = "command.mcp"
