"""Runs interrupted before the first turn, after the last one, and by outside cancellation."""

import anyio
import pytest
from sideband import Plugin, StoreError
from sideband.tools import tool
from sideband_scripted import Hang, Turn

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


def texts(agent):
    return [message.text for message in agent.session.messages()]


@pytest.mark.parametrize("hook", ["before_agent_start", "context", "sections"])
async def test_input_is_kept_if_the_run_is_aborted_before_its_first_turn(stage, kit, hook):
    events = []

    def end(event, ctx):
        ctx.abort("not now")

    end.__name__ = hook
    plugins = [Plugin("hook", "ender", kit.hooks(**{hook: end})), Plugin("hook", "ears", kit.listening(events))]
    async with stage(["never"], *plugins) as agent:
        result = await agent.invoke("hi")
        assert texts(agent) == ["hi"]
        assert agent.session.unfinished_run() is None
    assert (result.status, result.error["message"]) == ("aborted", "not now")
    assert [event.message["role"] for event in events if event.hook == "message_end"] == ["user"]
    assert [event.hook for event in events if event.hook.startswith("agent")] == ["agent_start", "agent_end"]


async def test_input_is_kept_if_the_prompt_cannot_be_built(stage, kit, monkeypatch):
    async with stage(["fine"], Plugin("hook", "empty", kit.hooks(sections=lambda event: []))) as agent:

        async def broken():
            raise StoreError("no skills today")

        with monkeypatch.context() as patch:
            patch.setattr(agent.host.tools, "skills", broken)
            result = await agent.invoke("hi")
        assert (result.status, texts(agent)) == ("failed", ["hi"])
        assert (await agent.resume()).text == "fine"
        assert texts(agent) == ["hi", "fine"]


async def test_run_can_be_aborted_during_its_input_hooks(stage, kit):
    begun = anyio.Event()

    async def input(event):  # noqa: A001  the hook's name
        begun.set()
        await anyio.sleep_forever()

    async with stage(["never"], Plugin("hook", "slow", kit.hooks(input=input))) as agent:
        with anyio.fail_after(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.invoke, "hi")
                await begun.wait()
                agent.abort()
        assert agent.is_idle
        assert (agent.scripted.requests, texts(agent)) == ([], [])


async def test_state_of_a_cancelled_run_does_not_leak_into_the_next(stage, kit):
    begun = anyio.Event()

    @tool("wait")
    async def wait(params: kit.Text, ctx) -> str:
        """Wait forever."""
        begun.set()
        await anyio.sleep_forever()
        return ""

    async with stage([Turn(tool_calls=[("wait", {})]), Hang()], Plugin("tool", "wait", wait)) as agent:
        for text, ready in (("hi", begun.is_set), ("again", lambda: len(agent.scripted.requests) == 2)):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.invoke, text)
                while not ready():
                    await anyio.lowlevel.checkpoint()
                if text == "hi":
                    tasks.cancel_scope.cancel()
                else:
                    agent.abort()
        kit.assert_valid(agent.session.messages())
        assert agent.session.unfinished_run() is None


def compacting(kit, compaction):
    def turn_end(event, ctx):
        ctx.compact("the numbers")

    return Plugin("hook", "compacting", kit.hooks(turn_end=turn_end, compaction=compaction))


SMALL = {"agent": {"model": "scripted:test", "compaction": {"keep": 10}}}


@pytest.mark.parametrize("how", ["abort", "cancel"])
async def test_compaction_after_a_run_can_be_cancelled(stage, kit, how):
    inside = anyio.Event()
    results = []

    async def compaction(event):
        inside.set()
        await anyio.sleep_forever()

    async with stage(["one " * 500], compacting(kit, compaction), settings=SMALL) as agent:

        async def run():
            results.append(await agent.invoke("please " * 500))

        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await inside.wait()
                if how == "abort":
                    agent.abort()
                else:
                    tasks.cancel_scope.cancel()
        assert agent.is_idle
        assert agent.session.unfinished_run() is None
    assert [result.status for result in results] == (["completed"] if how == "abort" else [])


async def test_failed_compaction_does_not_fail_the_run(stage, kit, monkeypatch, caplog):
    from sideband.hooks import Compacted

    async def compaction(event):
        return Compacted("short")

    async with stage(["one " * 500], compacting(kit, compaction), settings=SMALL) as agent:
        store = type(agent.host.store)
        append = store.append

        async def full(self, stream, values, **options):
            if any(value.get("type") == "compaction" for value in values):
                raise StoreError("the disk is full")
            return await append(self, stream, values, **options)

        monkeypatch.setattr(store, "append", full)
        result = await agent.invoke("please " * 500)
    assert result.status == "completed"
    assert "the disk is full" in caplog.text


async def test_result_of_an_aborted_run_contains_all_stored_messages(stage, kit):
    begun = anyio.Event()
    results = []

    @tool("wait")
    async def wait(params: kit.Text, ctx) -> str:
        """Wait forever."""
        begun.set()
        await anyio.sleep_forever()
        return ""

    async with stage([Turn(tool_calls=[("wait", {})])], Plugin("tool", "wait", wait)) as agent:

        async def run():
            results.append(await agent.invoke("hi"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await begun.wait()
            agent.abort()
        assert results[0].messages == agent.session.messages()
