"""The context of a tool call is valid until the call ends, and grants a child no further tools."""

import pytest
from sideband import Plugin
from sideband.tools import tool
from sideband_agent import CallEnded, ToolsUnknown
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_context_is_invalid_after_the_call(stage, kit):
    kept = []

    @tool("keeper")
    async def keeper(params: kit.Text, ctx) -> str:
        """Keep the context."""
        kept.append(ctx)
        return "kept"

    async with stage([Turn(tool_calls=[("keeper", {})]), "ok"], Plugin("tool", "keeper", keeper)) as agent:
        await agent.invoke("hi")
        with pytest.raises(CallEnded, match="keeper") as caught:
            await kept[0].dispatch("llm.models", {})
    assert caught.value.code == "agent.call"


async def test_unknown_tool_for_a_child_is_rejected(stage, kit):
    errors = []

    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        try:
            await ctx.spawn_child("do it", tools=["shell"])
        except ToolsUnknown as error:
            errors.append(error)
        return "no"

    async with stage([Turn(tool_calls=[("helper", {})]), "ok"], Plugin("tool", "helper", helper)) as agent:
        await agent.invoke("hi")
    assert errors[0].code == "agent.tools"
    assert "helper" in errors[0].hint
