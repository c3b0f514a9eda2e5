"""Aborted runs: completed steps are kept, and the conversation stays valid."""

from types import SimpleNamespace

import anyio
import pytest
from sideband import Plugin
from sideband.hooks import hookimpl
from sideband.tools import tool
from sideband_scripted import Hang, Turn

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


async def test_run_can_be_aborted_during_a_model_call(stage, kit):
    async with stage([Hang(), "again"]) as agent:
        async with anyio.create_task_group() as tasks:
            results = []

            async def run():
                results.append(await agent.invoke("hi"))

            tasks.start_soon(run)
            while not agent.scripted.requests:
                await anyio.lowlevel.checkpoint()
            agent.abort("enough")
        assert results[0].status == "aborted"
        assert results[0].error["message"] == "enough"
        assert (await agent.invoke("go on")).status == "completed"
        kit.assert_valid(agent.scripted.requests[-1].messages)


async def test_interrupted_calls_are_reported(stage, kit):
    begun = anyio.Event()

    @tool("wait")
    async def wait(params: kit.Text, ctx) -> str:
        """Wait forever."""
        begun.set()
        await anyio.sleep_forever()
        return ""

    turns = [Turn(tool_calls=[("wait", {}), ("echo", {"text": "x"}), ("nope", {})]), "ok"]
    async with stage(turns, kit.echo, Plugin("tool", "wait", wait)) as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(agent.invoke, "hi")
        await begun.wait()
        agent.abort()
        await agent.wait_for_idle()
        answers = [message for message in agent.session.messages() if message.role == "tool"]
        assert "was cancelled while it was running" in answers[0].text
        assert "unknown tool `nope`" in answers[2].text
        kit.assert_valid(agent.session.messages())


async def test_hook_can_abort_the_run(stage, kit):
    def turn_start(event, ctx):
        ctx.abort("not today")

    async with stage(["never"], Plugin("hook", "stopper", kit.hooks(turn_start=turn_start))) as agent:
        result = await agent.invoke("hi")
        assert [message.text for message in agent.session.messages()] == ["hi"]
    assert (result.status, result.error["message"]) == ("aborted", "not today")


async def test_end_of_an_aborted_run_is_emitted_once(stage, kit):
    events = []
    turns = [Hang()]
    async with stage(turns, Plugin("hook", "ears", kit.listening(events))) as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(agent.invoke, "hi")
        while not agent.scripted.requests:
            await anyio.lowlevel.checkpoint()
        agent.abort()
        await agent.wait_for_idle()
    ends = [event for event in events if event.hook == "agent_end"]
    assert [event.reason for event in ends] == ["aborted"]


async def test_key_that_interrupts_the_program_within_a_run_is_not_wrapped(stage):
    @hookimpl
    async def turn_start(event):
        raise KeyboardInterrupt

    async with stage(["hello"], Plugin("hook", "stop", SimpleNamespace(turn_start=turn_start))) as agent:
        with pytest.raises(KeyboardInterrupt):
            await agent.invoke("go")
