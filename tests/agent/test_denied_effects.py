"""An error of the broker about one call is the answer to that call and does not end the run."""

import anyio
import pytest
from sideband import Plugin
from sideband.hooks import Deny, hookimpl
from sideband.tools import tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

CALL = Turn(tool_calls=[("echo", {"text": "ha"})])


class Denying:
    """A guard that denies every tool call as an effect."""

    @hookimpl
    def op_call(self, event):
        return Deny("not this one") if event.op == "tool.call" else None


class Failing:
    """A guard that raises an error."""

    @hookimpl
    def op_call(self, event):
        if event.op == "tool.call":
            raise ValueError("what is this?")


@pytest.mark.parametrize("guard", [Denying, Failing])
async def test_guard_of_effects_blocks_only_that_call(stage, kit, guard):
    async with stage([CALL, "fine"], kit.echo, guards={"strict": guard}) as agent:
        result = await agent.invoke("hi")
        (answer,) = [message for message in agent.session.messages() if message.role == "tool"]
    assert (result.status, result.text) == ("completed", "fine")
    assert answer.is_error
    assert "strict" in answer.text or "not this one" in answer.text


@pytest.mark.parametrize("ending", [SystemExit, GeneratorExit])
async def test_tool_cannot_exit_the_host(stage, kit, ending):
    @tool("leave")
    async def leave(params: kit.Text, ctx) -> str:
        """Leave."""
        raise ending

    async with stage([Turn(tool_calls=[("leave", {})]), "fine"], Plugin("tool", "leave", leave)) as agent:
        result = await agent.invoke("hi")
        (answer,) = [message for message in agent.session.messages() if message.role == "tool"]
    assert result.text == "fine"
    assert ending.__name__ in answer.text


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_tool_timeout_is_reported_and_the_run_continues(stage, kit):
    @tool("slow", timeout=0.01)
    async def slow(params: kit.Text, ctx) -> str:
        """Take too long."""
        await anyio.sleep_forever()

    async with stage([Turn(tool_calls=[("slow", {})]), "fine"], Plugin("tool", "slow", slow)) as agent:
        assert (await agent.invoke("hi")).text == "fine"
        (answer,) = [message for message in agent.session.messages() if message.role == "tool"]
    assert "may have been executed in part" in answer.text
    assert "tool_seconds" not in answer.text


async def test_timeout_of_a_setting_names_the_setting(stage, kit):
    @tool("slow")
    async def slow(params: kit.Text, ctx) -> str:
        """Take too long."""
        await anyio.sleep_forever()

    settings = {"agent": {"model": "scripted:test", "tool_seconds": 0.01}}
    turns = [Turn(tool_calls=[("slow", {})]), "fine"]
    async with stage(turns, Plugin("tool", "slow", slow), settings=settings) as agent:
        assert (await agent.invoke("hi")).text == "fine"
        (answer,) = [message for message in agent.session.messages() if message.role == "tool"]
    assert answer.metadata["code"] == "op.timeout"
    assert "slow timed out after 0.01 s (set by `[agent] tool_seconds`)" in answer.text
