"""The contexts of tools and hooks are revoked at their deadline and when their run is aborted."""

import asyncio
import threading
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import pytest
from anyio import from_thread, to_thread
from sideband import Plugin
from sideband.ledger import query
from sideband.ops import ContextRevoked, OpContext, OpFamily, op
from sideband.tools import tool
from sideband_agent import CallEnded
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@pytest.fixture
def area(kit):
    """A family with an op that is recorded, and one that stays until it is cancelled and then dispatches."""
    state = SimpleNamespace(codes=[], staying=anyio.Event())

    @op("area.mark", record=["text"])
    async def mark(params: kit.Text, ctx: OpContext) -> str:
        return params.text

    @op("area.stay")
    async def stay(params: kit.Text, ctx: OpContext) -> None:
        await state.stay(ctx)

    async def stay_until_cancelled(ctx):
        state.staying.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                state.codes.append(await code_of(ctx.dispatch, "area.mark", {"text": "late"}))

    state.stay = stay_until_cancelled
    state.plugin = Plugin("op", "area", SimpleNamespace(sideband_ops=lambda: OpFamily("area", (mark, stay))))
    return state


async def code_of(function, *arguments):
    """Return the code of the error that a function raises, or `allowed`."""
    try:
        await function(*arguments)
    except (ContextRevoked, CallEnded) as error:
        return error.code
    return "allowed"


async def marks(agent):
    """Return the recorded dispatches of `area.mark`: the text, the outcome and the code of the error."""
    found = await query(agent.host.ledger.folder, op="area.mark")
    return [(one.params["text"], one.status, one.error and one.error["code"]) for one in reversed(found)]


def calling(name):
    return [Turn(tool_calls=[(name, {})]), "ok", "ok"]


LATE = [("late", "denied", "op.revoked")]


async def test_late_dispatch_of_a_tool_is_recorded_as_an_effect_of_its_call(stage, kit, area):
    kept = []

    @tool("keeper")
    async def keeper(params: kit.Text, ctx) -> str:
        """Keep the context."""
        kept.append(ctx)
        return "kept"

    updates = []

    async def tool_execution_update(event, ctx):
        updates.append(event)

    hooks = Plugin("hook", "watch", kit.hooks(tool_execution_update=tool_execution_update))
    async with stage(calling("keeper"), Plugin("tool", "keeper", keeper), hooks, area.plugin) as agent:
        first = await agent.invoke("hi")
        await kept[0].progress(message="late")
        await agent.invoke("again")
        assert updates == []
        assert await code_of(kept[0].dispatch, "area.mark", {"text": "late"}) == "agent.call"
        assert await marks(agent) == LATE
        (late,) = await query(agent.host.ledger.folder, op="area.mark")
    assert (late.origin.session, late.origin.run, late.origin.tool) == (first.session, first.run, "keeper")


@BOTH_BACKENDS
async def test_tool_that_ignores_its_timeout_cannot_use_its_context(stage, kit, area):
    begun = []

    @tool("slow", timeout=0.2)
    async def slow(params: kit.Text, ctx) -> None:
        """Stay."""
        begun.append("slow")
        await area.stay(ctx)
        raise AssertionError

    @tool("steady", timeout=0.2)
    async def steady(params: kit.Text, ctx) -> None:
        """Stay, and then ask for everything."""
        begun.append("steady")
        try:
            await anyio.sleep_forever()
        finally:
            for late in (ctx.abort, ctx.compact, lambda: ctx.steer("on"), lambda: ctx.follow_up("on")):
                with pytest.raises(CallEnded):
                    late()
            with anyio.CancelScope(shield=True):
                area.codes.append(await code_of(ctx.spawn_child, "go on"))
                area.codes.append(await code_of(ctx.credential, "name", "https://example.org"))

    calls = [Turn(tool_calls=[("slow", {}), ("steady", {})]), "ok"] * 100
    async with stage(calls, Plugin("tool", "slow", slow), Plugin("tool", "steady", steady), area.plugin) as agent:
        while set(begun) != {"slow", "steady"}:  # on a busy machine, a call may time out before it begins
            assert (await agent.invoke("hi")).text == "ok"
        assert (set(area.codes), set(await marks(agent))) == ({"agent.call"}, set(LATE))
        assert len(area.codes) == begun.count("slow") + 2 * begun.count("steady")


@BOTH_BACKENDS
async def test_tool_of_an_aborted_run_cannot_dispatch(stage, kit, area):
    @tool("slow")
    async def slow(params: kit.Text, ctx) -> None:
        """Stay."""
        await area.stay(ctx)

    async with stage(calling("slow"), Plugin("tool", "slow", slow), area.plugin) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "hi")
            await area.staying.wait()
            agent.abort()
        assert (area.codes, await marks(agent)) == (["agent.call"], LATE)


@BOTH_BACKENDS
async def test_tool_does_not_begin_if_the_run_is_aborted_before(stage, kit):
    ran = []

    async def tool_execution_start(event, ctx):
        ctx.abort()

    @tool("quick")
    async def quick(params: kit.Text, ctx) -> None:
        """Do something without waiting."""
        ran.append("quick")

    hooks = Plugin("hook", "early", kit.hooks(tool_execution_start=tool_execution_start))
    async with stage(calling("quick"), Plugin("tool", "quick", quick), hooks) as agent:
        assert ((await agent.invoke("hi")).status, ran) == ("aborted", [])


async def test_thread_of_an_aborted_run_cannot_dispatch(stage, kit, area):
    begun, aborted = threading.Event(), threading.Event()

    @tool("slow")
    async def slow(params: kit.Text, ctx) -> None:
        """Work in a thread, which cannot be cancelled."""
        loop = asyncio.get_running_loop()

        def work():
            begun.set()
            aborted.wait(60)
            late = asyncio.run_coroutine_threadsafe(code_of(ctx.dispatch, "area.mark", {"text": "late"}), loop)
            area.codes.append(late.result())

        await to_thread.run_sync(work)

    async with stage(calling("slow"), Plugin("tool", "slow", slow), area.plugin) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "hi")
            assert await to_thread.run_sync(begun.wait, 60)
            agent.abort()
            aborted.set()
        assert (area.codes, await marks(agent)) == (["agent.call"], LATE)


async def stay_in_thread(area, ctx):
    """Stay in a thread, which cannot be cancelled, until the run is aborted, and then dispatch."""
    loop = asyncio.get_running_loop()

    def work():
        asyncio.run_coroutine_threadsafe(area.set_staying(), loop).result()
        area.aborted.wait(60)
        late = asyncio.run_coroutine_threadsafe(code_of(ctx.dispatch, "area.mark", {"text": "late"}), loop)
        area.codes.append(late.result())

    await to_thread.run_sync(work)


@pytest.fixture
def threaded(area):
    """The family, whose op stays in a thread instead."""

    async def set_staying():
        area.staying.set()

    async def stay(ctx):
        await stay_in_thread(area, ctx)

    area.aborted, area.set_staying, area.stay = threading.Event(), set_staying, stay
    return area


@pytest.mark.parametrize("place", ["tool", "hook", "child"])
async def test_op_of_an_aborted_run_cannot_dispatch_from_a_thread(stage, kit, threaded, place):
    async def dispatch(ctx):
        await ctx.dispatch("area.stay", {})

    async def turn_start(event, ctx):
        if place == "hook":
            await dispatch(ctx)

    @tool("caller")
    async def caller(params: kit.Text, ctx) -> None:
        """Dispatch, or let a child do it."""
        if place == "child" and not params.text:
            await ctx.spawn_child("do it")
        else:
            await dispatch(ctx)

    turns = [Turn(tool_calls=[("caller", {})]), Turn(tool_calls=[("caller", {"text": "child"})]), "ok", "ok"]
    hooks = Plugin("hook", "early", kit.hooks(turn_start=turn_start))
    async with stage(turns, Plugin("tool", "caller", caller), hooks, threaded.plugin) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "hi")
            await threaded.staying.wait()
            agent.abort()
            threaded.aborted.set()
        assert (threaded.codes, await marks(agent)) == (["op.revoked"], LATE)


@BOTH_BACKENDS
@pytest.mark.parametrize("place", ["agent", "child"])
async def test_tool_in_a_run_that_is_cancelled_from_outside_cannot_dispatch_from_a_thread(stage, kit, area, place):
    loops, cancelled = [], threading.Event()

    async def mark_late(ctx):
        area.codes.append(await code_of(ctx.dispatch, "area.mark", {"text": "late"}))

    @tool("worker")
    async def worker(params: kit.Text, ctx) -> None:
        """Work in a thread, which cannot be cancelled, or let a child do it until a timeout."""
        if place == "child" and not params.text:
            with anyio.CancelScope() as area.scope:
                await ctx.spawn_child("do it")
            return
        loops.append(anyio.lowlevel.current_token())

        def work():
            from_thread.run_sync(area.staying.set, token=loops[0])
            cancelled.wait(60)
            from_thread.run(mark_late, ctx, token=loops[0])

        await to_thread.run_sync(work)

    turns = [Turn(tool_calls=[("worker", {})]), Turn(tool_calls=[("worker", {"text": "child"})]), "ok", "ok"]
    async with stage(turns, Plugin("tool", "worker", worker), area.plugin) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "hi")
            await area.staying.wait()
            (area.scope if place == "child" else tasks.cancel_scope).cancel()
            with anyio.CancelScope(shield=True):
                await anyio.wait_all_tasks_blocked()
                cancelled.set()
        assert (area.codes, await marks(agent)) == (["agent.call"], LATE)


@BOTH_BACKENDS
async def test_child_in_a_task_elsewhere_cannot_dispatch_after_the_run_of_its_parent_was_aborted(stage, kit, area):
    state = SimpleNamespace(aborted=anyio.Event(), done=anyio.Event(), release=threading.Event())

    @tool("starter")
    async def starter(params: kit.Text, ctx) -> None:
        """Start a child in a task of the plugin, and stay in a thread."""
        if params.text:
            area.staying.set()
            await state.aborted.wait()
            area.codes.append(await code_of(ctx.dispatch, "area.mark", {"text": "late"}))
            state.done.set()
        else:
            state.tasks.start_soon(spawn, ctx)
            await to_thread.run_sync(state.release.wait, 60)

    async def spawn(ctx):
        with suppress(CallEnded):
            await ctx.spawn_child("go on")

    @asynccontextmanager
    async def lifespan(ctx):
        async with anyio.create_task_group() as state.tasks:
            yield

    module = SimpleNamespace(sideband_tools=lambda: [starter], lifespan=lifespan)
    turns = [Turn(tool_calls=[("starter", {})]), Turn(tool_calls=[("starter", {"text": "child"})]), "ok", "ok"]
    async with stage(turns, Plugin("tool", "starter", module), area.plugin) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "hi")
            await area.staying.wait()
            agent.abort()
            state.aborted.set()
            await state.done.wait()
            state.release.set()
        assert (area.codes, await marks(agent)) == (["agent.call"], LATE)


@BOTH_BACKENDS
async def test_hook_of_an_aborted_run_cannot_use_its_context(stage, kit, area):
    async def turn_start(event, ctx):
        try:
            await area.stay(ctx)
        finally:
            with pytest.raises(ContextRevoked):
                ctx.steer("go on")

    hooks = Plugin("hook", "early", kit.hooks(turn_start=turn_start))
    async with stage(["ok"], hooks, area.plugin) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "hi")
            await area.staying.wait()
            agent.abort()
        assert (area.codes, await marks(agent)) == (["op.revoked"], LATE)


async def test_hook_that_is_called_because_of_an_abort_may_dispatch(stage, kit, area):
    async def agent_end(event, ctx):
        area.codes.append(await code_of(ctx.dispatch, "area.mark", {"text": "end"}))

    @tool("slow")
    async def slow(params: kit.Text, ctx) -> None:
        """Stay."""
        area.staying.set()
        await anyio.sleep_forever()

    hooks = Plugin("hook", "last", kit.hooks(agent_end=agent_end))
    async with stage(calling("slow"), Plugin("tool", "slow", slow), hooks, area.plugin) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "hi")
            await area.staying.wait()
            agent.abort()
        assert area.codes == ["allowed"]


@BOTH_BACKENDS
async def test_task_elsewhere_cannot_use_the_context_of_a_tool_that_has_ended(stage, kit, area):
    state = SimpleNamespace(ended=anyio.Event(), done=anyio.Event())

    async def go_on(ctx):
        await state.ended.wait()
        area.codes.append(await code_of(ctx.dispatch, "area.mark", {"text": "late"}))
        state.done.set()

    @tool("starter")
    async def starter(params: kit.Text, ctx) -> None:
        """Start a task of the plugin."""
        state.tasks.start_soon(go_on, ctx)

    @asynccontextmanager
    async def lifespan(ctx):
        async with anyio.create_task_group() as state.tasks:
            yield

    module = SimpleNamespace(sideband_tools=lambda: [starter], lifespan=lifespan)
    async with stage(calling("starter"), Plugin("tool", "starter", module), area.plugin) as agent:
        await agent.invoke("hi")
        state.ended.set()
        await state.done.wait()
        assert (area.codes, await marks(agent)) == (["agent.call"], LATE)
