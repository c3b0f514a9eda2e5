"""Continuing a session: resume, new input, fork, rewind, compaction and reload."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import sideband_llm.plugin
from sideband import Host, Plugin, StoreError
from sideband.hooks import Compacted
from sideband.store import StoreSpec
from sideband.tools import tool
from sideband_agent import Agent, Budget
from sideband_scripted import Scripted, Turn
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio


def counting(kit, ran):
    @tool("count", exclusive=True)
    async def count(params: kit.Text, ctx) -> str:
        """Count."""
        ran.append(params.text)
        return f"counted {params.text}"

    return Plugin("tool", "count", count)


TWO = Turn(tool_calls=[("count", {"text": "1"}), ("count", {"text": "2"})])


async def test_resume_replays_recorded_calls(stage, kit):
    ran = []
    async with stage([TWO, "done"], counting(kit, ran), budget=Budget(calls=1)) as agent:
        assert (await agent.invoke("hi")).status == "parked"
        assert [message.role for message in agent.session.messages()] == ["user", "assistant"]
        agent.allowance.limit = Budget(calls=10)
        result = await agent.resume()
        answers = [message.text for message in agent.session.messages() if message.role == "tool"]
    assert result.status == "completed"
    assert ran == ["1", "2"]
    assert answers == ["counted 1", "counted 2"]


async def test_new_input_skips_calls_that_were_not_run(stage, kit):
    ran = []
    async with stage([TWO, "fine"], counting(kit, ran), budget=Budget(calls=1)) as agent:
        await agent.invoke("hi")
        result = await agent.invoke("never mind")
        kit.assert_valid(agent.session.messages())
        kit.assert_valid(agent.scripted.requests[-1].messages)
        answers = [message for message in agent.session.messages() if message.role == "tool"]
    assert (result.status, ran) == ("completed", ["1"])
    assert answers[0].text == "counted 1"
    assert "was not run" in answers[1].text


async def test_another_agent_continues_the_session(stage, kit):
    async with stage(["one", "two"]) as agent:
        await agent.invoke("first")
        name = agent.session.id
        await agent.new_session()
        async with Agent(agent.host, session=name) as other:
            await other.invoke("second")
            assert [message.text for message in other.session.messages()] == ["first", "one", "second", "two"]


async def test_second_agent_cannot_open_the_session(stage):
    from sideband_agent.sessions import SessionLocked

    async with stage(["one"]) as agent:
        await agent.invoke("hi")
        with pytest.raises(SessionLocked):
            async with Agent(agent.host, session=agent.session.id):
                pass


async def test_switch_to_an_unknown_session_changes_nothing(stage):
    from sideband_agent.sessions import SessionNotFound

    async with stage(["one"]) as agent:
        before = agent.session.id
        with pytest.raises(SessionNotFound):
            await agent.switch_session("nope")
        assert agent.session.id == before
        assert (await agent.invoke("hi")).status == "completed"


async def test_fork_continues_from_its_entry(stage):
    async with stage(["one", "two", "other two"]) as agent:
        await agent.invoke("first")
        place, original = agent.session.leaf, agent.session.id
        await agent.invoke("second")
        fork = await agent.fork(place)
        await agent.invoke("something else")
        texts = [message.text for message in agent.session.messages()]
        tree = await agent.sessions.read(original)
    assert fork != original
    assert texts == ["first", "one", "something else", "other two"]
    assert [message.text for message in tree.context().messages] == ["first", "one", "second", "two"]


async def test_rewound_messages_are_hidden_but_stored(stage):
    async with stage(["one", "two", "three"]) as agent:
        await agent.invoke("first")
        place = agent.session.leaf
        await agent.invoke("second")
        await agent.rewind(place, summary="we tried something")
        await agent.invoke("third")
        seen = [message.text for message in agent.scripted.requests[-1].messages]
        kept = [entry.message.text for entry in agent.session.tree.entries if entry.type == "message"]
    assert "second" not in seen
    assert any("we tried something" in text for text in seen)
    assert "second" in kept


async def test_plugin_can_request_a_compaction(stage, kit):
    compacted = []

    def turn_end(event, ctx):
        if event.index == 0 and not compacted:
            ctx.compact("keep the numbers")

    def compaction(event):
        compacted.append(event.instructions)
        return Compacted("the numbers are 1 and 2")

    plugin = Plugin("hook", "tidy", kit.hooks(turn_end=turn_end, compaction=compaction))
    settings = {"agent": {"model": "scripted:test", "compaction": {"keep": 10}}}
    turns = [Turn(tool_calls=[("echo", {"text": "word " * 300})]), "done"]
    async with stage(turns, kit.echo, plugin, settings=settings) as agent:
        await agent.invoke("please " * 100)
        assert any("the numbers are 1 and 2" in message.text for message in agent.session.messages())
    assert compacted == ["keep the numbers"]


async def test_plugin_can_deny_a_compaction(stage, kit):
    from sideband.hooks import Cancel

    plugin = Plugin("hook", "keeper", kit.hooks(compaction=lambda event: Cancel("not now")))
    plugin.value.compaction.__name__ = "compaction"
    settings = {"agent": {"model": "scripted:test", "compaction": {"keep": 10}}}
    async with stage(["one", "two"], plugin, settings=settings) as agent:
        await agent.invoke("word " * 500)
        await agent.invoke("again")
        before = agent.session.messages()
        assert not await agent.compact()
        assert agent.session.messages() == before


async def test_reload_rebuilds_the_prompt_and_keeps_the_conversation(stage, kit):
    from sideband.hooks import Section

    version = [1]

    def sections(event):
        return [Section("version", f"version {version[0]}")]

    async with stage(["one", "two"], Plugin("hook", "prompts", kit.hooks(sections=sections))) as agent:
        await agent.invoke("first")
        version[0] = 2
        await agent.reload()
        await agent.invoke("second")
        first, second = agent.scripted.requests
    assert (first.system, second.system) == ("version 1", "version 2")
    assert [message.text for message in second.messages] == ["first", "one", "second"]


async def test_closed_agent_raises_an_error(stage):
    from sideband_agent import AgentClosed

    async with stage(["one"]) as agent:
        pass
    with pytest.raises(AgentClosed):
        await agent.invoke("hi")


class FullDisk:
    """A store plugin with a simulated full disk."""

    def __init__(self):
        self.full = False

    def sideband_stores(self):
        return [StoreSpec("full", self.open)]

    @asynccontextmanager
    async def open(self, folder):
        async with open_sqlite(folder) as store:
            append = store.append

            async def limited(*arguments, **options):
                if self.full:
                    raise StoreError("the disk is full")
                return await append(*arguments, **options)

            yield SimpleNamespace(
                append=limited,
                read=store.read,
                get=store.get,
                put=store.put,
                delete=store.delete,
                delete_stream=store.delete_stream,
                keys=store.keys,
                transaction=store.transaction,
                sync=store.sync,
                unsynced=store.unsynced,
            )


async def test_full_disk_loses_no_stored_entries(tmp_path):
    disk = FullDisk()
    plugins = [
        Plugin("op", "llm", sideband_llm.plugin),
        Plugin("store", "full", disk),
        Plugin("provider", "scripted", Scripted(["one", "two"])),
    ]
    settings = {"agent": {"model": "scripted:test"}}
    host = Host(home=tmp_path / "home", settings=settings, plugins=plugins, autoload=False)
    async with host, Agent(host) as agent:
        await agent.invoke("first")
        disk.full = True
        with pytest.raises(StoreError):
            await agent.invoke("second")
        disk.full = False
        assert agent.is_idle
        assert [message.text for message in agent.session.messages()] == ["first", "one"]
        assert (await agent.invoke("third")).text == "two"


@pytest.mark.parametrize("way", ["new", "switch", "fork", "reload"])
async def test_failed_switch_keeps_the_current_session(stage, monkeypatch, way):
    events = []
    async with stage(["one", "two"], on_event=events.append) as agent:
        await agent.invoke("hi")
        first = agent.session.id
        second = await agent.new_session()
        await agent.switch_session(first)
        events.clear()

        async def broken():
            raise OSError("the tools cannot be read")

        with monkeypatch.context() as patch:
            patch.setattr(agent.host.tools, "view", broken)
            ways = {
                "new": agent.new_session,
                "switch": lambda: agent.switch_session(second),
                "fork": agent.fork,
                "reload": agent.reload,
            }
            with pytest.raises(OSError, match="the tools"):
                await ways[way]()
        assert events == []
        assert agent.session.id == first
        assert (await agent.invoke("go on")).text == "two"
        await agent.switch_session(second)  # the failed attempts hold no locks


async def test_reload_finds_new_skills(stage, monkeypatch):
    from sideband.loading import LoadedSkills

    async with stage(["one"]) as agent:
        catalog = agent.host.catalog
        loads = []

        async def load():
            loads.append(1)
            return LoadedSkills((), ())

        monkeypatch.setattr(catalog, "_load", load)
        await agent.skills()
        assert loads == []
        await agent.reload()
        await agent.skills()
        assert loads == [1]
