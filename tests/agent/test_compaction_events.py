"""The events around a compaction: a start and an end for each, however it ends."""

import anyio
import pytest
from sideband import Plugin, StoreError
from sideband.hooks import Cancel, Compact, Compacted, hookimpl
from sideband.providers import ProviderRefused

pytestmark = pytest.mark.anyio
KEEP_LITTLE = {"agent": {"model": "scripted:test", "compaction": {"keep": 10}, "context_window": 100_000}}
SMALL = {"agent": {"model": "scripted:test", "compaction": {"keep": 10, "reserve": 10}, "context_window": 2_500}}


def answering(name, answer):
    def function(event):
        return answer

    function.__name__ = name
    return hookimpl(function)


def watching(kit, events, answer=None, **functions):
    """Build a plugin that collects the events of compactions, and answers `compaction`."""
    plugin = kit.listening(events, "compaction_start", "session_compact", "compaction_end")
    plugin.compaction = answering("compaction", answer)
    vars(plugin).update(functions)
    return Plugin("hook", "watcher", plugin)


def outline(events):
    return [(one.hook, getattr(one, "status", getattr(one, "reason", ""))) for one in events]


async def test_requested_compaction_has_a_start_and_an_end(stage, kit):
    events = []
    async with stage(["one", "two"], watching(kit, events, Compacted("short")), settings=KEEP_LITTLE) as agent:
        await agent.invoke("word " * 500)
        await agent.invoke("again")
        before = agent.context_tokens
        assert await agent.compact()
        after = agent.context_tokens
    assert outline(events) == [
        ("compaction_start", "requested"),
        ("session_compact", ""),
        ("compaction_end", "completed"),
    ]
    assert (events[0].tokens, events[2].tokens) == (before, after)
    assert after < before


async def test_nothing_to_compact_has_neither_a_start_nor_an_end(stage, kit):
    events = []
    async with stage(["one"], watching(kit, events), settings=KEEP_LITTLE) as agent:
        assert not await agent.compact()
    assert events == []


async def test_denied_compaction_has_an_end(stage, kit):
    events = []
    async with stage(["one", "two"], watching(kit, events, Cancel("not now")), settings=KEEP_LITTLE) as agent:
        await agent.invoke("word " * 500)
        await agent.invoke("again")
        assert not await agent.compact()
    assert outline(events) == [("compaction_start", "requested"), ("compaction_end", "denied")]
    assert events[0].tokens == events[1].tokens


async def test_compaction_that_is_due_names_its_reason(stage, kit):
    events = []
    async with stage(["one " * 500], watching(kit, events, Compacted("short")), settings=SMALL) as agent:
        await agent.invoke("please " * 2_000)
    assert outline(events) == [("compaction_start", "due"), ("session_compact", ""), ("compaction_end", "completed")]


async def test_compaction_after_an_overflow_names_its_reason(stage, kit):
    events = []
    turns = ["one", ProviderRefused("scripted", "too long", status=400), "two"]
    plugin = watching(kit, events, Compacted("short"), model_error=answering("model_error", Compact()))
    async with stage(turns, plugin, settings=KEEP_LITTLE) as agent:
        await agent.invoke("word " * 500)
        await agent.invoke("again")
    assert outline(events)[0] == ("compaction_start", "overflow")
    assert outline(events)[-1] == ("compaction_end", "completed")


async def test_lone_surrogate_in_a_summary_does_not_reach_the_model(stage, kit):
    turns, plugin = ["one", "two", "three"], watching(kit, [], Compacted("a \ud800 b"))
    async with stage(turns, plugin, settings=KEEP_LITTLE) as agent:
        await agent.invoke("word " * 500)
        await agent.invoke("again")
        assert await agent.compact()
        assert (await agent.invoke("go on")).status == "completed"
        assert "a \ufffd b" in agent.scripted.requests[2].messages[0].text


async def test_failed_compaction_has_an_end(stage, kit, monkeypatch):
    events = []
    async with stage(["one", "two"], watching(kit, events, Compacted("short")), settings=KEEP_LITTLE) as agent:
        await agent.invoke("word " * 500)
        await agent.invoke("again")
        store = type(agent.host.store)
        append = store.append

        async def full(self, stream, values, **options):
            if any(value.get("type") == "compaction" for value in values):
                raise StoreError("the disk is full")
            return await append(self, stream, values, **options)

        monkeypatch.setattr(store, "append", full)
        with pytest.raises(StoreError):
            await agent.compact()
    assert outline(events) == [("compaction_start", "requested"), ("compaction_end", "failed")]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancelled_compaction_has_an_end(stage, kit):
    events, inside = [], anyio.Event()

    @hookimpl
    async def compaction(event):
        inside.set()
        await anyio.sleep_forever()

    async with stage(["one", "two"], watching(kit, events, compaction=compaction), settings=KEEP_LITTLE) as agent:
        await agent.invoke("word " * 500)
        await agent.invoke("again")
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.compact)
                await inside.wait()
                tasks.cancel_scope.cancel()
        assert agent.is_idle
    assert outline(events) == [("compaction_start", "requested"), ("compaction_end", "aborted")]
