"""What a tool may do ends with its call, and what it hands on is what it has."""

import pytest
from sideband import Plugin
from sideband.tools import tool
from sideband_agent import CallEnded, ToolsUnknown
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


async def test_a_context_that_was_kept_gives_no_rights_once_the_call_has_ended(stage, kit):
    kept = []

    @tool("keeper")
    async def keeper(params: kit.Text, ctx) -> str:
        """Keep it."""
        kept.append(ctx)
        return "kept"

    async with stage([Turn(tool_calls=[("keeper", {})]), "ok"], Plugin("tool", "keeper", keeper)) as agent:
        await agent.invoke("hi")
        with pytest.raises(CallEnded, match="keeper") as caught:
            await kept[0].dispatch("llm.models", {})
    assert caught.value.code == "agent.call"


async def test_a_tool_that_is_not_there_can_not_be_handed_on(stage, kit):
    errors = []

    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Let a child do it."""
        try:
            await ctx.spawn_child("do it", tools=["shell"])
        except ToolsUnknown as error:
            errors.append(error)
        return "no"

    async with stage([Turn(tool_calls=[("helper", {})]), "ok"], Plugin("tool", "helper", helper)) as agent:
        await agent.invoke("hi")
    assert errors[0].code == "agent.tools"
    assert "helper" in errors[0].hint
