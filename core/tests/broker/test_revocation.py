"""A context is revoked when its function ends, is past its deadline or is cancelled: late dispatches are recorded."""

import asyncio
import threading
import time
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import pytest
from anyio import from_thread, to_thread
from pydantic import BaseModel
from sideband import Plugin
from sideband.broker import Call
from sideband.contexts import TimedLease
from sideband.hooks import Allow, hookimpl
from sideband.ledger import query
from sideband.ops import ContextRevoked, Credential, Grant, OpContext, OpFamily, OpTimeout, Origin, Undo, op

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


class Text(BaseModel):
    text: str = ""


@op("area.mark", record=["text"])
async def mark(params: Text, ctx: OpContext) -> str:
    return params.text


def keeping(kept):
    """Return an op that keeps its context in a list."""

    @op("area.keep")
    async def keep(params: Text, ctx: OpContext) -> None:
        kept.append(ctx)

    return keep


async def code_of(function, *arguments):
    """Return the code of the error that a function raises, or `allowed`."""
    try:
        await function(*arguments)
    except ContextRevoked as error:
        return error.code
    return "allowed"


async def marks(host, **options):
    """Return the recorded dispatches of `area.mark`: the text, the outcome and the code of the error."""
    found = await query(host.ledger.folder, op="area.mark", **options)
    return [(one.params["text"], one.status, one.error and one.error["code"]) for one in reversed(found)]


async def test_dispatch_with_the_context_of_an_op_that_has_ended_is_refused_and_recorded(make_host, family):
    kept = []
    async with make_host(family("area", keeping(kept), mark)) as host:
        await host.op("area.keep", {})
        assert await code_of(kept[0].dispatch, "area.mark", {"text": "late"}) == "op.revoked"
        (late,) = await query(host.ledger.folder, op="area.mark")
    assert (late.params, late.status, late.error["code"]) == ({"text": "late"}, "denied", "op.revoked")
    assert (late.origin.plugin, late.within) == ("area", kept[0].effect)


async def test_code_that_goes_on_with_its_revoked_context_does_not_fill_the_ledger(make_host, family):
    kept = []
    async with make_host(family("area", keeping(kept), mark)) as host:
        for _ in range(2):
            await host.op("area.keep", {})
        for _ in range(150):
            assert await code_of(kept[0].dispatch, "area.mark", {"text": "again"}) == "op.revoked"
        assert await code_of(kept[1].dispatch, "area.mark", {"text": "other"}) == "op.revoked"
        found = await marks(host, limit=1_000)
    assert (found.count(("again", "denied", "op.revoked")), found.count(("other", "denied", "op.revoked"))) == (100, 1)


async def test_numbers_of_late_dispatches_do_not_fill_the_memory(make_host, family):
    async with make_host(family("area", mark)) as host:
        plugin = await host.broker.ops.plugin("area")
        call = Call("call", Grant(), "user", Origin(), anyio.current_time() + 60)
        for number in range(1_100):
            ctx = host.broker.context(plugin, call, op="area.mark", effect=str(number), deadline=0)
            assert await code_of(ctx.dispatch, "area.mark", {"text": "late"}) == "op.revoked"
        assert len(host.broker._recorder._late) < 1_100


@BOTH_BACKENDS
async def test_task_elsewhere_cannot_dispatch_with_the_context_of_an_op_that_has_ended(make_host):
    state = SimpleNamespace(ended=anyio.Event(), done=anyio.Event())

    async def go_on(ctx):
        await state.ended.wait()
        state.code = await code_of(ctx.dispatch, "area.mark", {"text": "late"})
        state.done.set()

    @op("area.start")
    async def start(params: Text, ctx: OpContext) -> None:
        state.tasks.start_soon(go_on, ctx)

    @asynccontextmanager
    async def lifespan(ctx):
        async with anyio.create_task_group() as state.tasks:
            yield

    module = SimpleNamespace(sideband_ops=lambda: OpFamily("area", (start, mark)), lifespan=lifespan)
    async with make_host(Plugin("op", "area", module)) as host:
        await host.op("area.start", {})
        state.ended.set()
        await state.done.wait()
        assert (state.code, await marks(host)) == ("op.revoked", [("late", "denied", "op.revoked")])


@BOTH_BACKENDS
async def test_handler_that_ignores_its_deadline_cannot_dispatch(make_host, family):
    codes = []

    @op("area.stay", timeout=0.05)
    async def stay(params: Text, ctx: OpContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                codes.append(await code_of(ctx.dispatch, "area.mark", {"text": "late"}))
                codes.append(await code_of(ctx.launch, None))
                codes.append(await code_of(ctx.credential, "name", "https://example.org"))

    async with make_host(family("area", stay, mark)) as host:
        with pytest.raises(OpTimeout):
            await host.op("area.stay", {})
        assert codes == ["op.revoked"] * 3
        assert await marks(host) == [("late", "denied", "op.revoked")]


async def test_handler_that_is_past_its_deadline_may_still_note_what_it_has_done(make_host, family):
    @op("area.stay", timeout=0.05)
    async def stay(params: Text, ctx: OpContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await ctx.note({"made": "a folder"})

    async with make_host(family("area", stay)) as host:
        with pytest.raises(OpTimeout):
            await host.op("area.stay", {})
        (effect,) = await query(host.ledger.folder, op="area.stay")
    assert effect.note == {"made": "a folder"}


async def test_thread_that_outlasts_the_deadline_of_its_op_cannot_dispatch(make_host, family):
    codes = []

    @op("area.work", timeout=0.05)
    async def work(params: Text, ctx: OpContext) -> None:
        loop = asyncio.get_running_loop()

        def in_thread():
            while loop.time() < ctx.deadline:
                time.sleep(0.01)
            late = asyncio.run_coroutine_threadsafe(code_of(ctx.dispatch, "area.mark", {"text": "late"}), loop)
            codes.append(late.result())

        await to_thread.run_sync(in_thread)

    async with make_host(family("area", work, mark)) as host:
        while not codes:  # on a busy machine, the deadline may pass before the thread begins
            with suppress(OpTimeout):
                await host.op("area.work", {})
        assert (codes, await marks(host)) == (["op.revoked"], [("late", "denied", "op.revoked")])


@BOTH_BACKENDS
async def test_thread_of_a_child_effect_cannot_dispatch_after_the_deadline_of_its_parent(make_host, family):
    codes, deadline = [], []

    async def mark_late(ctx):
        codes.append(await code_of(ctx.dispatch, "area.mark", {"text": "late"}))

    @op("area.work")
    async def work(params: Text, ctx: OpContext) -> None:
        loop = anyio.lowlevel.current_token()

        def in_thread():
            while from_thread.run_sync(anyio.current_time, token=loop) < deadline[0]:
                time.sleep(0.01)
            from_thread.run(mark_late, ctx, token=loop)

        await to_thread.run_sync(in_thread)

    @op("area.outer", timeout=0.5)
    async def outer(params: Text, ctx: OpContext) -> None:
        deadline.append(ctx.deadline)
        await ctx.dispatch("area.work", {})

    async with make_host(family("area", work, outer, mark)) as host:
        while not codes:  # on a busy machine, the deadline may pass before the thread begins
            deadline.clear()
            with suppress(OpTimeout, ContextRevoked):
                await host.op("area.outer", {})
        assert (codes, await marks(host)) == (["op.revoked"], [("late", "denied", "op.revoked")])


@BOTH_BACKENDS
@pytest.mark.parametrize("call_ends", [False, True])
async def test_child_effect_that_outlives_its_parent_may_dispatch_until_the_call_ends(make_host, call_ends):
    state = SimpleNamespace(begun=anyio.Event(), ended=anyio.Event(), done=anyio.Event())

    @op("area.stay")
    async def stay(params: Text, ctx: OpContext) -> None:
        state.begun.set()
        await state.ended.wait()
        state.code = await code_of(ctx.dispatch, "area.mark", {"text": "later"})
        state.done.set()

    @op("area.start")
    async def start(params: Text, ctx: OpContext) -> None:
        state.tasks.start_soon(ctx.dispatch, "area.stay", {})
        await state.begun.wait()

    @asynccontextmanager
    async def lifespan(ctx):
        async with anyio.create_task_group() as state.tasks:
            yield

    module = SimpleNamespace(sideband_ops=lambda: OpFamily("area", (start, stay, mark)), lifespan=lifespan)
    async with make_host(Plugin("op", "area", module)) as host:
        call = Call("call", Grant(), "plugin", Origin(), anyio.current_time() + 60)
        await host.broker.dispatch(call, "area.start", {})
        if call_ends:
            await call.end(pytest.fail)
        state.ended.set()
        await state.done.wait()
        assert state.code == ("op.revoked" if call_ends else "allowed")


async def test_abandoned_thread_cannot_dispatch_after_its_op(make_host, family):
    begun, ended, codes, done = anyio.Event(), threading.Event(), [], anyio.Event()

    @op("area.work")
    async def work(params: Text, ctx: OpContext) -> None:
        loop = anyio.lowlevel.current_token()

        def in_thread():
            from_thread.run_sync(begun.set, token=loop)
            ended.wait(60)
            codes.append(from_thread.run(code_of, ctx.dispatch, "area.mark", {"text": "late"}, token=loop))
            from_thread.run_sync(done.set, token=loop)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(to_thread.run_sync, in_thread, abandon_on_cancel=True))
            await begun.wait()
            tasks.cancel_scope.cancel()

    async with make_host(family("area", work, mark)) as host:
        await host.op("area.work", {})
        ended.set()
        await done.wait()
        assert (codes, await marks(host)) == (["op.revoked"], [("late", "denied", "op.revoked")])


@BOTH_BACKENDS
async def test_dispatch_whose_context_ends_while_a_guard_decides_is_refused(make_host, hook):
    state = SimpleNamespace(asked=anyio.Event(), ended=anyio.Event(), done=anyio.Event())

    @hookimpl
    async def op_call(event):
        if event.op == "area.mark":
            state.asked.set()
            await state.ended.wait()
        return Allow()

    async def dispatch(ctx):
        state.code = await code_of(ctx.dispatch, "area.mark", {"text": "late"})
        state.done.set()

    @op("area.start")
    async def start(params: Text, ctx: OpContext) -> None:
        state.tasks.start_soon(dispatch, ctx)
        await state.asked.wait()

    @asynccontextmanager
    async def lifespan(ctx):
        async with anyio.create_task_group() as state.tasks:
            yield

    module = SimpleNamespace(sideband_ops=lambda: OpFamily("area", (start, mark)), lifespan=lifespan)
    settings = {"policy": {"deadlines": {"op_call": 60}}}
    async with make_host(Plugin("op", "area", module), hook("slow", op_call), settings=settings) as host:
        await host.op("area.start", {})
        state.ended.set()
        await state.done.wait()
        assert (state.code, await marks(host)) == ("op.revoked", [("late", "denied", "op.revoked")])


async def test_no_guard_is_asked_about_a_late_dispatch(make_host, family, hook):
    kept, asked = [], []

    @hookimpl
    async def op_call(event):
        asked.append(event.op)

    async with make_host(family("area", keeping(kept), mark), hook("curious", op_call)) as host:
        await host.op("area.keep", {})
        assert await code_of(kept[0].dispatch, "area.mark", {"text": "late"}) == "op.revoked"
    assert asked == ["area.keep"]


async def test_context_of_a_resolver_of_credentials_ends_with_the_resolution(make_host, family):
    kept = []

    class Keeper:
        async def resolve(self, handle, audience, ctx):
            kept.append(ctx)
            return Credential(handle, "a-value")

    @op("area.sign")
    async def sign(params: Text, ctx: OpContext) -> None:
        await ctx.credential("token", "https://example.org")
        assert await code_of(kept[0].dispatch, "area.mark", {"text": "late"}) == "op.revoked"

    @op("secrets.none")
    async def none(params: Text, ctx: OpContext) -> None: ...

    vault = family("secrets", none, credentials=Keeper())
    async with make_host(family("area", sign, mark), vault) as host:
        await host.op("area.sign", {})
        assert await marks(host) == [("late", "denied", "op.revoked")]


async def test_context_of_a_preview_ends_with_the_preview_and_with_the_call(make_host, family, hook):
    kept, codes = [], []

    async def preview(params, ctx):
        kept.append((ctx, ctx.deadline - anyio.current_time()))
        return "nothing"

    @op("area.show", preview=preview)
    async def show(params: Text, ctx: OpContext) -> None: ...

    @hookimpl
    async def op_call(event):
        if event.op == "area.show":
            await event.preview(event.params)
            codes.append(await code_of(kept[-1][0].dispatch, "area.mark", {"text": "late"}))

    async with make_host(family("area", show, mark), hook("curious", op_call)) as host:
        await host.op("area.show", {})
        await host.op("area.show", {}, deadline=15)
        assert (codes, await marks(host)) == (["op.revoked"] * 2, [("late", "denied", "op.revoked")] * 2)
    assert [seconds <= most for (_, seconds), most in zip(kept, (20, 15), strict=True)] == [True, True]


async def test_context_of_an_undo_ends_with_its_plan(make_host, family):
    kept = []

    async def undo(recorded, ctx):
        kept.append(ctx)
        return Undo()

    @op("area.change", undo=undo)
    async def change(params: Text, ctx: OpContext) -> str:
        return ctx.effect

    async with make_host(family("area", change)) as host:
        await host.plan_undo(await host.op("area.change", {}))
        with pytest.raises(ContextRevoked):
            kept[0].require()


async def test_nothing_is_streamed_after_the_op(make_host, family):
    kept, parts = [], []

    @op("area.keep")
    async def keep(params: Text, ctx: OpContext) -> None:
        kept.append(ctx)
        await ctx.emit({"text": "in time"})

    async def on_part(part):
        parts.append(part)

    async with make_host(family("area", keep)) as host:
        call = Call("call", Grant(), "user", Origin(), anyio.current_time() + 60, on_part=on_part)
        await host.broker.dispatch(call, "area.keep", {})
        await kept[0].emit({"text": "late " * 1_000})
    assert "".join(part["text"] for part in parts) == "in time"


async def test_nothing_can_be_noted_about_an_op_that_has_ended(make_host, family):
    kept = []
    async with make_host(family("area", keeping(kept))) as host:
        await host.op("area.keep", {})
        with pytest.raises(ContextRevoked):
            await kept[0].note({"made": "a folder"})
        (effect,) = await query(host.ledger.folder, op="area.keep")
    assert effect.note == {}


async def test_function_that_is_to_run_at_the_end_of_a_call_cannot_be_added_after_its_dispatch(make_host, family):
    kept = []
    async with make_host(family("area", keeping(kept))) as host:
        await host.op("area.keep", {})
        with pytest.raises(ContextRevoked):
            kept[0].on_call_end(None)


@BOTH_BACKENDS
async def test_hook_that_ignores_its_deadline_cannot_dispatch_but_its_next_call_can(make_host, family, hook):
    codes = []

    @hookimpl
    async def effect(event, ctx):
        if event.op != "area.keep":
            return
        if codes:
            codes.append(await code_of(ctx.dispatch, "area.mark", {"text": "next"}))
            return
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                codes.append(await code_of(ctx.dispatch, "area.mark", {"text": "late"}))
                codes.append(await code_of(ctx.credential, "name", "https://example.org"))

    @op("area.keep")
    async def keep(params: Text, ctx: OpContext) -> None: ...

    settings = {"policy": {"deadlines": {"effect": 5}}}
    async with make_host(family("area", keep, mark), hook("watch", effect), settings=settings) as host:
        host.hooks._deadlines["effect"] = 0.05  # only for the call that must miss it
        await host.op("area.keep", {})
        host.hooks._deadlines["effect"] = 60
        await host.op("area.keep", {})
        assert codes == ["op.revoked", "op.revoked", "allowed"]
        assert await marks(host) == [("late", "denied", "op.revoked"), ("next", "done", None)]
        late = (await query(host.ledger.folder, op="area.mark"))[-1]
    assert late.origin.plugin == "watch"


async def test_context_of_a_hook_that_returned_in_time_is_valid_for_tasks_of_its_plugin(make_host, family, hook):
    kept = []

    @hookimpl
    async def effect(event, ctx):
        kept.append(ctx)

    async with make_host(family("area", mark), hook("watch", effect)) as host:
        await host.op("area.mark", {"text": "first"})
        kept[0].lease.deadline = time.perf_counter()
        assert await code_of(kept[0].dispatch, "area.mark", {"text": "later"}) == "allowed"


@BOTH_BACKENDS
async def test_hook_that_is_cancelled_cannot_use_its_context_later(make_host, family, hook):
    state = SimpleNamespace(called=anyio.Event())

    @hookimpl
    async def op_call(event, ctx):
        if event.op == "area.keep":
            state.ctx = ctx
            state.called.set()
            await anyio.sleep_forever()

    @op("area.keep")
    async def keep(params: Text, ctx: OpContext) -> None: ...

    settings = {"policy": {"deadlines": {"op_call": 60}}}
    async with make_host(family("area", keep, mark), hook("slow", op_call), settings=settings) as host:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.op, "area.keep", {})
            await state.called.wait()
            tasks.cancel_scope.cancel()
        assert await code_of(state.ctx.dispatch, "area.mark", {"text": "late"}) == "op.revoked"
        assert await marks(host) == [("late", "denied", "op.revoked")]


@pytest.mark.parametrize(("seconds", "is_over"), [(60, False), (0, True)])
def test_lease_of_a_function_that_has_ended_depends_on_its_deadline_at_that_time(seconds, is_over):
    lease = TimedLease(time.perf_counter() + seconds)
    lease.settle()
    lease.deadline += 60 - 2 * seconds
    assert lease.is_over() is is_over
