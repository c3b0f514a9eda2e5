"""The ends of the progress of one call: late output, closed streams, and further ones."""

import anyio
import pytest
from sideband.broker import CallProgress, Redaction
from sideband.ops import OpContext, op
from sideband.tools import emit_tool_progress, emit_tool_progress_closed

from .progress_readers import CANARY, Nothing, Reader

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("observed", [True, False])
async def test_output_after_the_end_of_its_op_is_ignored(make_host, family, observed):
    kept = []

    @op("area.keep")
    async def keep(params: Nothing, ctx: OpContext) -> None:
        import contextvars

        kept.append(contextvars.copy_context())
        emit_tool_progress("in time")

    @op("area.outer")
    async def outer(params: Nothing, ctx: OpContext) -> None:
        await ctx.dispatch("area.keep", {})
        kept[0].run(emit_tool_progress, "late")

    reader = Reader()
    async with make_host(family("area", keep, outer)) as host:
        await host.op("area.outer", {}, on_progress=reader.take if observed else None)
        kept[0].run(emit_tool_progress, "later")
    if observed:
        assert reader.text() == "in time"


async def test_output_of_an_effect_of_a_hook_is_not_progress_of_the_call(make_host, family, hook):
    from sideband import hookimpl

    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress(params.text)

    @op("area.outer")
    async def outer(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress("own ")
        await ctx.dispatch("area.print", {"text": "child"})

    @hookimpl
    async def effect(event, ctx):
        if event.op == "area.print" and event.origin.plugin != "watch":
            await ctx.dispatch("area.print", {"text": "of the hook"})

    reader = Reader()
    async with make_host(family("area", show, outer), hook("watch", effect)) as host:
        await host.op("area.outer", {}, on_progress=reader.take)
    assert reader.text() == "own child"


async def test_call_can_close_its_streams_before_it_ends(make_host, family):
    closed = anyio.Event()

    def take(event):
        reader.events.append(event)
        if event.closed:
            closed.set()

    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress("all")
        emit_tool_progress_closed()
        await closed.wait()
        emit_tool_progress("late")

    reader = Reader()
    async with make_host(family("area", show)) as host:
        with anyio.fail_after(20):
            await host.op("area.print", {}, on_progress=take)
    assert reader.text() == "all"


async def test_child_effect_closes_only_its_own_output(make_host, family):
    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress("child ")
        emit_tool_progress_closed()
        emit_tool_progress("late")

    @op("area.outer")
    async def outer(params: Nothing, ctx: OpContext) -> None:
        await ctx.dispatch("area.print", {})
        emit_tool_progress("outer")

    reader = Reader()
    async with make_host(family("area", show, outer)) as host:
        await host.op("area.outer", {}, on_progress=reader.take)
    assert reader.text() == "child outer"


async def test_child_effect_adds_nothing_to_streams_that_its_call_has_closed(make_host, family):
    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress("late")

    @op("area.outer")
    async def outer(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress("all")
        emit_tool_progress_closed()
        await ctx.dispatch("area.print", {})

    reader = Reader()
    async with make_host(family("area", show, outer)) as host:
        await host.op("area.outer", {}, on_progress=reader.take)
    assert reader.text() == "all"


async def test_closing_a_call_adds_what_child_effects_hold_back(make_host, family):
    printed, may_end = anyio.Event(), anyio.Event()

    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        ctx.protect(CANARY, "canary")
        emit_tool_progress(CANARY[:8])
        printed.set()
        await may_end.wait()

    @op("area.outer")
    async def outer(params: Nothing, ctx: OpContext) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ctx.dispatch, "area.print", {})
            await printed.wait()
            emit_tool_progress_closed()
            may_end.set()

    reader = Reader()
    async with make_host(family("area", show, outer)) as host:
        await host.op("area.outer", {}, on_progress=reader.take)
    assert reader.text() == CANARY[:8]


async def test_output_after_the_end_of_its_call_is_ignored_while_the_rest_is_delivered(anyio_backend):
    reader = Reader(waits=True)
    progress = CallProgress("c1", "build", Redaction())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(progress.deliver, reader.take)
        progress.report("build", message="first")
        await reader.began.wait()
        progress.close()
        with progress.writing("late"):
            emit_tool_progress("late" * 10_000)  # not waiting for more
        progress.report("late", message="late")
        reader.may_continue.set()
    assert [(one.message, one.text) for one in reader.events] == [("first", None), (None, None)]


async def test_further_streams_share_one(make_host, family):
    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        for number in range(30):
            emit_tool_progress(f"{number} ", f"stream_{number}")

    reader = Reader()
    async with make_host(family("area", show)) as host:
        await host.op("area.print", {}, on_progress=reader.take)
    assert reader.text("other") == "".join(f"{number} " for number in range(16, 30))
    assert len({one.stream for one in reader.events}) == 17
