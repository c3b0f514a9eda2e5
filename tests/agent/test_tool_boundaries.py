"""No sequence of calls, sources and changes gives an agent, or a child, a tool that its restrictions exclude."""

from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatchcase
from types import SimpleNamespace
from uuid import uuid4

import anyio
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband import Host, Plugin
from sideband.hooks import hookimpl
from sideband.host import _tool_sources
from sideband.tools import Tool
from sideband_agent import Agent, ToolRefused
from sideband_scripted import Scripted, Turn

NAMES = ["echo", "tickets.a", "tickets.b", "mine", "more"]
OWN_SOURCES = ["plugin echo", "plugin delegate", "source tickets", "session"]
PATTERNS = st.lists(st.sampled_from([*NAMES, "tickets.*", "m*", "e*", "tickets__a"]), max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("list"), st.lists(st.sampled_from(NAMES), unique=True)),
        st.tuples(st.just("offer"), st.sampled_from(NAMES)),
        st.tuples(st.just("withdraw"), st.sampled_from(NAMES)),
        st.tuples(st.just("select"), st.none() | st.lists(st.sampled_from([*NAMES, "delegate"]))),
        st.tuples(st.just("call"), st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)),
        st.tuples(st.just("delegate"), st.none() | PATTERNS, st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)),
        st.tuples(st.just("reload")),
    ),
    max_size=8,
)


class Stage:
    """An agent with restrictions whose tools change, and a record of what was sent to its model and what ran."""

    def __init__(self, names, sources):
        self.names = None if names is None else [*names, "delegate"]
        self.sources = None if sources is None else [*sources, "plugin delegate"]
        self.plan, self.ran, self.sent, self.selected = [], [], [], None
        self.excess = []
        self.tools, self.listed, self.announced = [], 0, anyio.Event()

    def make(self, name, origin):
        async def run(arguments, ctx):
            self.ran.append((name, origin, ctx.agent.inherited is not None))
            return "done"

        return Tool(name, "", {"type": "object"}, dict, run)

    async def answer(self, request):
        self.sent += [one.name for one in request.tools]
        return self.plan.pop(0) if self.plan else "ok"

    @asynccontextmanager
    async def source(self, ctx):
        yield SimpleNamespace(list=self.list, changed=self.changed)

    async def list(self):
        self.listed += 1
        return [self.make(name, "source tickets") for name in self.tools]

    async def changed(self):
        await self.announced.wait()
        self.announced = anyio.Event()

    async def delegate(self, arguments, ctx):
        tools, calls = arguments["tools"], arguments["calls"]
        self.plan.insert(0, calling(calls))
        before = len(self.ran)
        try:
            await ctx.spawn_child("work", tools=tools)
        except LookupError:
            self.plan.pop(0)
        self.excess += [one for one, _, _ in self.ran[before:] if tools is not None and not is_match(one, tools)]
        return "delegated"

    def plugins(self):
        delegate = Tool("delegate", "", {"type": "object"}, dict, self.delegate)
        source = SimpleNamespace(name="tickets", scope="host", open=self.source)
        select = SimpleNamespace(tool_selection=hookimpl(lambda event: self.selected))
        return [
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("provider", "scripted", Scripted([self.answer] * 200)),
            Plugin("tool", "delegate", delegate),
            Plugin("tool", "echo", SimpleNamespace(sideband_tools=lambda: [self.make("echo", "plugin echo")])),
            Plugin("tool", "desk", SimpleNamespace(sideband_tools=lambda: [source])),
            Plugin("hook", "select", select),
        ]

    async def take(self, agent, kind, *values):
        if kind == "list":
            self.tools, before = values[0], self.listed
            self.announced.set()
            with anyio.fail_after(60):
                while self.listed == before:  # noqa: ASYNC110  there is no event for it
                    await anyio.sleep(0.001)
        elif kind == "offer":
            with suppress(ToolRefused):
                agent.offer(self.make(values[0], "session"))
        elif kind == "withdraw":
            agent.withdraw(values[0])
        elif kind == "select":
            self.selected = values[0] and [one.replace(".", "__") for one in values[0]]
        elif kind == "reload":
            await agent.reload()
        else:
            calls = values[0] if kind == "call" else [("delegate", {"tools": values[0], "calls": values[1]})]
            self.plan = [calling(calls)]
            assert (await agent.invoke("go")).status == "completed"

    def check(self):
        assert not self.excess, "a child had a tool that it was not given"
        for name, origin, _ in self.ran:
            assert self.names is None or is_match(name, self.names)
            assert self.sources is None or is_match(origin, self.sources)
        known = {"echo": "plugin echo", "delegate": "plugin delegate"}
        for name in self.sent:
            plain = name.replace("__", ".")
            assert self.names is None or is_match(plain, self.names)
            origins = [known.get(plain)] if plain in known else ["source tickets", "session"]
            assert self.sources is None or any(is_match(one, self.sources) for one in origins)


def calling(calls):
    return Turn(tool_calls=[one if isinstance(one, tuple) else (one.replace(".", "__"), {}) for one in calls])


def is_match(name, patterns):
    return any(fnmatchcase(one, pattern) for one in (name, name.replace(".", "__")) for pattern in patterns)


@given(st.none() | PATTERNS, st.none() | st.lists(st.sampled_from([*OWN_SOURCES, "plugin *"]), max_size=2), STEPS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_sequence_of_calls_sources_and_changes_widens_an_agent(tmp_path, monkeypatch, names, sources, steps):
    monkeypatch.setattr(_tool_sources, "PAUSE", 0)

    async def main():
        stage = Stage(names, sources)
        settings = {"agent": {"model": "scripted:test"}}
        host = Host(home=tmp_path / uuid4().hex, settings=settings, plugins=stage.plugins(), autoload=False)
        async with host, Agent(host, tools=stage.names, sources=stage.sources) as agent:
            with anyio.fail_after(60):
                await host.tools.wait_for_sources()
            for step in steps:
                await stage.take(agent, *step)
                stage.check()

    anyio.run(main)
