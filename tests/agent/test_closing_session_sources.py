"""Sources of a session end with it, in order, also if tools are offered and withdrawn while they end."""

from collections import Counter
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Level, Plugin
from sideband.host import _tool_sources
from sideband.ledger import query
from sideband.ops import OpFamily, op
from sideband.tools import Tool
from sideband_agent import Agent

pytestmark = pytest.mark.anyio


def make(name):
    async def run(arguments, ctx):
        return "done"

    return Tool(name, "", {"type": "object"}, dict, run)


class Source:
    """A source of a session that can be kept from ending."""

    scope = "session"

    def __init__(self, name):
        self.name = name
        self.seen = Counter()
        self.closing, self.may_close = anyio.Event(), anyio.Event()
        self.may_close.set()

    @asynccontextmanager
    async def open(self, ctx):
        self.seen["open"] += 1
        try:
            yield SimpleNamespace(list=self.list, changed=anyio.sleep_forever)
        finally:
            self.closing.set()
            with anyio.CancelScope(shield=True):
                await self.may_close.wait()
                await self.end(ctx)
            self.seen["close"] += 1

    async def list(self):
        return [make(f"{self.name}.a")]

    async def end(self, ctx): ...


class Slow(Source):
    """A source that ends only when the test allows it."""

    def __init__(self, name):
        super().__init__(name)
        self.may_close = anyio.Event()


async def until(condition):
    """Wait until a condition holds."""
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110  there is no event for each condition
            await anyio.sleep(0.001)


@asynccontextmanager
async def switching(agent, slow):
    """Switch to a new session, and run the block while the source of the old one ends."""
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.new_session)
            await slow.closing.wait()
            yield
            slow.may_close.set()


async def test_sources_of_a_session_are_closed_in_reverse_order(stage):
    closed = []

    class Noting(Source):
        async def end(self, ctx):
            closed.append(self.name)

    async with stage(["ok"], own_tools=[Noting("one"), Noting("two"), Noting("three")]) as agent:
        await until(lambda: len(agent.tools.names) == 3)
        await agent.new_session()
        assert closed == ["three", "two", "one"]


async def test_source_that_is_offered_while_sessions_are_switched_is_opened_for_the_new_one(stage):
    slow, late = Slow("slow"), Source("late")
    async with stage(["ok"], own_tools=[slow]) as agent:
        await until(lambda: agent.tools.names == ("slow.a",))
        async with switching(agent, slow):
            agent.offer(late)
            assert not late.seen
        await until(lambda: agent.tools.names == ("late.a", "slow.a"))
    assert late.seen == {"open": 1, "close": 1}


async def test_sources_that_are_withdrawn_while_sessions_are_switched_are_not_opened_again(stage):
    slow, other = Slow("slow"), Source("other")
    async with stage(["ok"], own_tools=[other, slow]) as agent:
        await until(lambda: agent.tools.names == ("other.a", "slow.a"))
        async with switching(agent, slow):
            assert agent.withdraw("other")
            assert agent.withdraw("slow")
        assert agent.tools.names == ()
    assert other.seen == slow.seen == {"open": 1, "close": 1}


async def test_tools_that_a_plugin_changes_while_sessions_are_switched_are_those_of_the_new_one(stage, kit):
    def change(event, ctx):
        ctx.agent.withdraw("old")
        ctx.agent.offer(make("new"))

    plugin = Plugin("hook", "change", kit.hooks(session_shutdown=change))
    async with stage(["ok"], plugin, own_tools=[make("old")]) as agent:
        agent.tools  # noqa: B018  looked up before the change
        await agent.new_session()
        assert agent.tools.names == ("new",)


class Nothing(BaseModel):
    pass


@op("desk.leave", level=Level.SAFE)
async def leave(params: Nothing, ctx) -> str:
    return "left"


async def test_source_can_cause_an_effect_when_it_ends_which_its_session_records(stage):
    class Leaving(Source):
        async def end(self, ctx):
            assert await ctx.dispatch("desk.leave", {}) == "left"

    source = Leaving("notes")
    desk = SimpleNamespace(sideband_tools=lambda: [source])
    family = SimpleNamespace(sideband_ops=lambda: OpFamily("desk", ops=(leave,)))
    sessions = []
    async with stage(["ok"], Plugin("tool", "desk", desk), Plugin("op", "desk", family)) as first:
        async with Agent(first.host) as agent:
            await until(lambda: agent.tools.names == ("notes.a",))
            sessions.append(agent.session.id)
            sessions.append(await agent.new_session())
            await until(lambda: agent.tools.names == ("notes.a",))
        records = await query(first.host.ledger.folder, op="desk.leave")
        assert sorted(one.origin.session for one in records) == sorted(sessions)
    assert source.seen["open"] == source.seen["close"]


async def test_agent_that_is_closed_waits_for_a_source_that_was_withdrawn(stage):
    slow = Slow("slow")
    async with stage(["ok"]) as first:
        async with Agent(first.host, own_tools=[slow]) as agent:
            await until(lambda: agent.tools.names == ("slow.a",))
            assert agent.withdraw("slow")
            await slow.closing.wait()
            slow.may_close.set()
            assert not slow.seen["close"]
        assert slow.seen["close"]


async def test_closing_many_hanging_sources_of_a_session_has_one_time_limit(stage, monkeypatch):
    class Hanging(Source):
        @asynccontextmanager
        async def open(self, ctx):
            yield SimpleNamespace(list=self.list, changed=anyio.sleep_forever)
            await anyio.sleep_forever()

    monkeypatch.setattr(_tool_sources, "CLOSE_SECONDS", 600)
    monkeypatch.setattr(_tool_sources, "CLOSE_ALL_SECONDS", 0.05)
    own = [Hanging(f"s{number}") for number in range(10)]
    with anyio.fail_after(60):
        async with stage(["ok"], own_tools=own) as agent:
            await until(lambda: len(agent.tools.names) == 10)
            await agent.new_session()


async def test_sources_that_have_ended_are_forgotten(stage):
    async with stage(["ok"]) as agent:
        for _ in range(5):
            source = Source("notes")
            agent.offer(source)
            await until(lambda: agent.tools.names == ("notes.a",))
            agent.withdraw("notes")
            await until(lambda one=source: one.seen["close"])
        assert len(agent._parts.tools._opened) == len(agent.host.tools._tasks._running) == 1
