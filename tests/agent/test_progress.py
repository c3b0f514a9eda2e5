"""The progress of tool calls: from tools, ops, child effects, skills and commands, under the call of the tool."""

from collections import defaultdict
from types import SimpleNamespace

import anyio
import pytest
import sideband_progress.plugin
import sideband_skills.plugin
from anyio import to_thread
from pydantic import BaseModel
from sideband import CallRequest, Plugin
from sideband.ops import OpContext, OpFamily, op
from sideband.tools import emit_tool_progress, tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
CANARY = "s3cr3t-canary-value"


class Nothing(BaseModel):
    pass


@op("area.print")
async def show(params: Nothing, ctx: OpContext) -> None:
    """Emit output and a report."""
    emit_tool_progress("output of the op\n")
    await ctx.progress(current=1, message="report of the op")


@op("area.outer")
async def outer(params: Nothing, ctx: OpContext) -> None:
    """Dispatch a child effect."""
    await ctx.dispatch("area.print", {})


AREA = Plugin("op", "area", SimpleNamespace(sideband_ops=lambda: OpFamily(name="area", ops=(show, outer))))


class Observer:
    """A plugin that collects progress by call and stream."""

    def __init__(self):
        self.events = []
        self.began = anyio.Event()
        self.may_continue = anyio.Event()
        self.may_continue.set()

    async def tool_progress(self, event):
        self.events.append(event)
        self.began.set()
        await self.may_continue.wait()

    def plugin(self, kit):
        async def tool_progress(event, ctx):
            await self.tool_progress(event)

        return Plugin("hook", "observer", kit.hooks(tool_progress=tool_progress))

    def streams(self):
        """Return the events without the last one of each stream, which closes it. Check that offsets are continuous."""
        found = defaultdict(list)
        for event in self.events:
            found[event.call, event.stream].append(event)
        for events in found.values():
            offset = 0
            for event in events:
                assert event.offset == offset
                is_report = event.text is None and not event.closed
                offset += event.gap or (int(is_report) if event.text is None else len(event.text.encode()))
            assert [event.closed for event in events] == [False] * (len(events) - 1) + [True]
        return {key: events[:-1] for key, events in found.items()}

    def text(self, call="c1", stream="stdout"):
        return "".join(event.text for event in self.streams()[call, stream])


def calling(*names):
    ids = [f"c{number}" for number in range(1, len(names) + 1)]
    return [Turn(tool_calls=[(name, {}, identifier) for name, identifier in zip(names, ids, strict=True)]), "ok"]


@BOTH_BACKENDS
async def test_progress_of_ops_that_a_tool_dispatches_arrives_under_its_call(stage, kit):
    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        await ctx.progress(current=0, total=2, message="begin", unit="steps")
        emit_tool_progress("output of the tool\n")
        await ctx.dispatch("area.outer", {})
        return "done"

    observer = Observer()
    async with stage(calling("work"), Plugin("tool", "work", work), AREA, observer.plugin(kit)) as agent:
        await agent.invoke("hi")
    streams = observer.streams()
    assert {event.tool for event in observer.events} == {"work"}
    assert [(one.source, one.text) for one in streams["c1", "stdout"]] == [
        ("work", "output of the tool\n"),
        ("area.print", "output of the op\n"),
    ]
    assert [(one.source, one.current, one.message, one.unit) for one in streams["c1", "progress"]] == [
        ("work", 0, "begin", "steps"),
        ("area.print", 1, "report of the op", None),
    ]


async def test_progress_of_a_skill_arrives_under_the_call_of_its_tool(stage, kit, tmp_path):
    folder = tmp_path / "skills" / "counter"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: counter\ndescription: Counts.\n---\n")
    (folder / "tools.py").write_text(
        "from sideband.skill import progress, tool\n\n\n@tool\nasync def go() -> str:\n"
        '    """Count."""\n    for number in range(500):\n'
        "        await progress.report(current=number)\n    return 'done'\n"
    )
    observer = Observer()
    plugins = [
        Plugin("op", "progress", sideband_progress.plugin),
        Plugin("loader", "skills", sideband_skills.plugin),
        observer.plugin(kit),
    ]
    settings = {"policy": {"isolation": "none"}}
    async with stage(calling("counter__go"), *plugins, settings=settings, skill_dirs=[tmp_path / "skills"]) as agent:
        await agent.invoke("hi")
    reports = observer.streams()["c1", "progress"]
    position = 0
    for one in reports:
        if one.gap is None:
            assert (one.current, one.tool, one.source) == (position, "counter.go", "progress.report")
        position += one.gap or 1
    assert position == 500


@pytest.fixture
def count(stage, kit, tmp_path):
    """Call a skill that reports and dispatches an op ``area.step``, and return its reports."""

    async def call(script, step, *plugins):
        folder = tmp_path / "skills" / "counter"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            "---\nname: counter\ndescription: Counts.\nmetadata:\n  sideband.capabilities: area\n---\n"
        )
        (folder / "tools.py").write_text(
            "from sideband.skill import area, progress, tool\n\n\n@tool\nasync def go() -> None:\n"
            f'    """Count."""\n{script}'
        )
        observer = Observer()
        own = [
            Plugin("op", "progress", sideband_progress.plugin),
            Plugin("op", "area", SimpleNamespace(sideband_ops=lambda: OpFamily(name="area", ops=(step,)))),
            Plugin("loader", "skills", sideband_skills.plugin),
            *plugins,
        ]
        settings = {"policy": {"isolation": "none"}}
        async with stage([], *own, settings=settings, skill_dirs=[tmp_path / "skills"]) as agent:
            with anyio.CancelScope() as scope:
                call.scopes.append(scope)
                await agent.host.run(CallRequest("counter.go", {}, grants=["area"], on_progress=observer.tool_progress))
        return [event for events in observer.streams().values() for event in events]

    call.scopes = []
    return call


def total(reports):
    """Return the number of reports, delivered or missing. Check that each is at its position."""
    assert [one.current for one in reports if one.gap is None] == [one.offset for one in reports if one.gap is None]
    return sum(one.gap or 1 for one in reports)


@pytest.mark.parametrize("hook", ["op_call", "effect"])
async def test_reports_of_a_skill_that_wait_when_its_call_is_cancelled_are_counted(count, kit, hook):
    @op("area.step")
    async def cancel(params: Nothing, ctx: OpContext) -> None:
        """Cancel the call. Its earlier reports have arrived; one of them is being taken, or was taken just now."""
        count.scopes[0].cancel()
        cancelled.set()
        await anyio.sleep_forever()

    cancelled = anyio.Event()

    async def wait(event):
        if event.op == "progress.report" and event.params["current"] == 3:
            await (cancelled.wait() if hook == "effect" else anyio.sleep_forever())

    kind, hooks = ("guard", kit.guard) if hook == "op_call" else ("hook", kit.hooks)
    wait.__name__ = hook
    script = "    for number in range(10):\n        await progress.report(current=number)\n    await area.step()\n"
    reports = await count(script, cancel, Plugin(kind, "waiting", hooks(**{hook: wait})))
    assert total(reports) == 10
    assert [one.gap for one in reports if one.gap] == ([1] if hook == "op_call" else [])


async def test_reports_of_a_skill_beyond_the_limit_are_missing_where_they_were_sent(count, kit):
    first, second, reached = anyio.Event(), anyio.Event(), anyio.Event()

    @op("area.step")
    async def proceed(params: Nothing, ctx: OpContext) -> None:
        """Let the first report pass, so that there is room for one more, or all others."""
        if first.is_set():
            second.set()
        first.set()
        await reached.wait()

    async def op_call(event):
        if event.op == "progress.report" and event.params["current"] == 0:
            await first.wait()
        elif event.op == "progress.report" and event.params["current"] == 1:
            reached.set()
            await second.wait()

    script = (
        "    for number in range(40):\n        await progress.report(current=number)\n    await area.step()\n"
        "    await progress.report(current=40)\n    await area.step()\n"
    )
    reports = await count(script, proceed, Plugin("guard", "waiting", kit.guard(op_call=op_call)))
    assert [(one.current, one.gap) for one in reports[-3:]] == [(31, None), (None, 8), (40, None)]


@BOTH_BACKENDS
async def test_parallel_calls_of_one_turn_have_separate_streams(stage, kit):
    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        for _ in range(100):
            await emit_tool_progress(ctx.call)
        return "done"

    observer = Observer()
    async with stage(calling("work", "work"), Plugin("tool", "work", work), observer.plugin(kit)) as agent:
        await agent.invoke("hi")
    assert {call: observer.text(call) for call in ("c1", "c2")} == {"c1": "c1" * 100, "c2": "c2" * 100}


@BOTH_BACKENDS
async def test_ten_thousand_reports_of_a_tool_are_in_order_or_counted_as_missing(stage, kit):
    observer = Observer()

    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        await ctx.progress(current=0)
        await observer.began.wait()
        observer.may_continue = anyio.Event()
        for number in range(1, 10_000):
            await ctx.progress(current=number)
        observer.may_continue.set()
        return "done"

    async with stage(calling("work"), Plugin("tool", "work", work), observer.plugin(kit)) as agent:
        await agent.invoke("hi")
    reports = observer.streams()["c1", "progress"]
    position = 0
    for one in reports:
        if one.gap is None:
            assert one.current == position
        position += one.gap or 1
    assert position == 10_000


@BOTH_BACKENDS
async def test_simple_display_gets_only_the_newest_report(stage, kit):
    updates = []
    began, may_continue = anyio.Event(), anyio.Event()

    async def tool_execution_update(event, ctx):
        updates.append(event.current)
        began.set()
        await may_continue.wait()

    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        await ctx.progress(current=0)
        await began.wait()
        emit_tool_progress("text")
        for number in range(1, 100):
            await ctx.progress(current=number)
        may_continue.set()
        return "done"

    watch = Plugin("hook", "watch", kit.hooks(tool_execution_update=tool_execution_update))
    for extra in ((), (Observer().plugin(kit),)):
        updates.clear()
        async with stage(calling("work"), Plugin("tool", "work", work), watch, *extra) as agent:
            await agent.invoke("hi")
        assert updates == [0, 99]
        began, may_continue = anyio.Event(), anyio.Event()


@BOTH_BACKENDS
async def test_aborted_call_closes_its_streams_before_the_run_ends(stage, kit):
    ended = []

    async def agent_end(event, ctx):
        ended.append(len(observer.events))

    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        emit_tool_progress("half")
        ctx.abort()
        await anyio.sleep_forever()

    observer = Observer()
    end = Plugin("hook", "end", kit.hooks(agent_end=agent_end))
    async with stage(calling("work"), Plugin("tool", "work", work), observer.plugin(kit), end) as agent:
        assert (await agent.invoke("hi")).status == "aborted"
    assert observer.text() == "half"
    assert ended == [2]


async def test_failed_call_closes_its_streams(stage, kit):
    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        emit_tool_progress("before the failure")
        raise RuntimeError("it broke")

    observer = Observer()
    async with stage(calling("work"), Plugin("tool", "work", work), observer.plugin(kit)) as agent:
        await agent.invoke("hi")
    assert observer.text() == "before the failure"


async def test_output_of_a_thread_that_outlives_its_call_is_ignored(stage, kit):
    import threading

    proceed, finished = threading.Event(), threading.Event()

    def compute():
        emit_tool_progress("in time")
        begun.set()
        proceed.wait()
        emit_tool_progress("late")
        finished.set()

    begun = threading.Event()

    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: to_thread.run_sync(compute, abandon_on_cancel=True))
                await to_thread.run_sync(begun.wait)
                scope.cancel()
        return "done"

    observer = Observer()
    async with stage(calling("work"), Plugin("tool", "work", work), observer.plugin(kit)) as agent:
        await agent.invoke("hi")
        proceed.set()
        await to_thread.run_sync(finished.wait)
    assert observer.text() == "in time"


async def test_secret_that_is_split_over_two_texts_is_redacted(stage, kit):
    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        ctx.protect(CANARY, "canary")
        emit_tool_progress(f"it is {CANARY[:9]}")
        await ctx.dispatch("area.outer", {})
        emit_tool_progress(CANARY[9:])
        await ctx.progress(message=CANARY, unit=CANARY)
        return "done"

    observer = Observer()
    async with stage(calling("work"), Plugin("tool", "work", work), AREA, observer.plugin(kit)) as agent:
        await agent.invoke("hi")
    assert observer.text() == "it is output of the op\n[redacted:canary]"
    assert CANARY not in str(observer.events)


async def test_progress_is_neither_stored_nor_sent_to_the_model(stage, kit, tmp_path):
    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        emit_tool_progress("ephemeral words")
        await ctx.progress(current=1, message="ephemeral words")
        return "done"

    observer = Observer()
    async with stage(calling("work"), Plugin("tool", "work", work), observer.plugin(kit)) as agent:
        await agent.invoke("hi")
        requests = [request.model_dump_json() for request in agent.scripted.requests]
        session = str(list(agent.session.newest_first()))
    assert observer.text() == "ephemeral words"
    assert "done" in requests[-1]
    assert "done" in session
    stored = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert any(b'"done' in content for content in stored)
    for content in (*requests, session, *(one.decode("latin-1") for one in stored)):
        assert "ephemeral words" not in content


async def test_child_agent_has_its_own_calls(stage, kit):
    @tool("inner")
    async def inner(params: kit.Text, ctx) -> str:
        """Print."""
        emit_tool_progress("of the child")
        return "printed"

    @tool("outer")
    async def parent(params: kit.Text, ctx) -> str:
        """Ask a child."""
        emit_tool_progress("of the parent")
        return (await ctx.spawn_child("print", tools=["inner"])).text

    turns = [
        Turn(tool_calls=[("outer", {}, "c1")]),
        Turn(tool_calls=[("inner", {}, "c2")]),
        "printed",
        "ok",
    ]
    observer = Observer()
    async with stage(
        turns, Plugin("tool", "outer", parent), Plugin("tool", "inner", inner), observer.plugin(kit)
    ) as agent:
        await agent.invoke("hi")
    assert (observer.text("c1"), observer.text("c2")) == ("of the parent", "of the child")


async def test_progress_can_be_switched_off(stage, kit):
    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        emit_tool_progress("output")
        await ctx.progress(message="begun")
        return "done"

    observer = Observer()
    plugins = Plugin("tool", "work", work), observer.plugin(kit)
    async with stage(calling("work"), *plugins, settings={"tools": {"progress": False}}) as agent:
        assert (await agent.invoke("hi")).status == "completed"
    assert observer.events == []


async def test_output_is_shown_at_once_if_the_settings_choose_that(stage, kit):
    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        for text in ("a", "b", "c"):
            await emit_tool_progress(text)
            await observer.began.wait()
            observer.began = anyio.Event()
        return "done"

    observer = Observer()
    plugins = Plugin("tool", "work", work), observer.plugin(kit)
    settings = {"tools": {"progress_seconds": 0, "progress_bytes": 4}}
    async with stage(calling("work"), *plugins, settings=settings) as agent:
        with anyio.fail_after(10):
            await agent.invoke("hi")
    assert [one.text for one in observer.streams()["c1", "stdout"]] == ["a", "b", "c"]
