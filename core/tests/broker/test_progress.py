"""The progress of one call: order, coalescing, gaps, redaction and threads."""

import asyncio
import threading

import anyio
import pytest
from anyio import to_thread
from sideband.broker import CallProgress, Redaction
from sideband.ops import OpContext, OpFailed, OpTimeout, op
from sideband.tools import emit_tool_progress, emit_tool_progress_closed

from .progress_readers import CANARY, Nothing, Reader, both_backends, size_of

pytestmark = pytest.mark.anyio


@both_backends
async def test_thousand_reports_arrive_one_by_one_and_in_order(make_host, family):
    @op("area.work")
    async def work(params: Nothing, ctx: OpContext) -> None:
        for number in range(1_000):
            await ctx.progress(current=number, total=1_000, message=f"{number}", unit="files")

    reader = Reader()
    async with make_host(family("area", work)) as host:
        await host.op("area.work", {}, on_progress=reader.take)
    reports = reader.of("progress")
    assert [(one.current, one.message) for one in reports] == [(number, f"{number}") for number in range(1_000)]
    assert {(one.tool, one.source, one.total, one.unit) for one in reports} == {
        ("area.work", "area.work", 1_000, "files")
    }


@both_backends
async def test_ten_thousand_reports_reach_a_slow_reader_in_order_or_as_a_gap_with_their_number(make_host, family):
    reader = Reader(waits=True)

    @op("area.work")
    async def work(params: Nothing, ctx: OpContext) -> None:
        await ctx.progress(current=0)
        await reader.began.wait()
        for number in range(1, 10_000):
            await ctx.progress(current=number)
        reader.may_continue.set()

    async with make_host(family("area", work)) as host:
        await host.op("area.work", {}, on_progress=reader.take)
    first, gap, *rest = reader.of("progress")
    assert (first.current, gap.gap) == (0, 8_999)
    assert [one.current for one in rest] == list(range(9_000, 10_000))


@both_backends
async def test_text_is_collected(make_host, family):
    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        for number in range(100):
            emit_tool_progress(f"{number}\n")
            emit_tool_progress(f"error {number}\n", "stderr")

    reader = Reader()
    async with make_host(family("area", show)) as host:
        await host.op("area.print", {}, on_progress=reader.take)
    assert [one.text for one in reader.of("stdout")] == ["".join(f"{number}\n" for number in range(100))]
    assert [one.text for one in reader.of("stderr")] == ["".join(f"error {number}\n" for number in range(100))]


@both_backends
async def test_short_text_is_delivered_while_its_op_waits(make_host, family):
    reader = Reader()

    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress("waiting")
        await reader.began.wait()

    async with make_host(family("area", show)) as host:
        with anyio.fail_after(20):
            await host.op("area.print", {}, on_progress=reader.take)
    assert reader.text() == "waiting"


async def test_text_of_an_event_has_at_most_16_kib_and_whole_characters(make_host, family):
    text = "aé漢😀" * 20_000

    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress(text)

    reader = Reader()
    async with make_host(family("area", show)) as host:
        await host.op("area.print", {}, on_progress=reader.take)
    assert reader.text() == text
    sizes = [size_of(one) for one in reader.of("stdout")]
    assert max(sizes) <= 16_384
    assert min(sizes[:-1]) > 16_380


async def test_text_without_an_encoding_is_replaced(make_host, family):
    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress("a\ud800b")
        await ctx.progress(message="c\udfff")

    reader = Reader()
    async with make_host(family("area", show)) as host:
        await host.op("area.print", {}, on_progress=reader.take)
    assert reader.text() == "a\ufffdb"
    assert [one.message for one in reader.of("progress")] == ["c\ufffd"]


@both_backends
async def test_slow_reader_gets_the_newest_text_after_a_gap_with_the_size_of_the_rest(make_host, family):
    reader = Reader(waits=True)
    lines = [f"line {number:09}\n" for number in range(500_000)]

    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress(lines[0])
        await reader.began.wait()
        for start in range(1, len(lines), 1_000):
            emit_tool_progress("".join(lines[start : start + 1_000]))
        reader.may_continue.set()

    async with make_host(family("area", show)) as host:
        await host.op("area.print", {}, on_progress=reader.take)
    first, gap, *rest = reader.of("stdout")
    newest = "".join(one.text for one in rest)
    assert first.text == lines[0]
    assert "".join(lines).endswith(newest)
    assert len(lines[0]) + gap.gap + len(newest) == sum(map(len, lines))
    assert (1 << 20) - 2 * 16_384 <= len(newest) <= 1 << 20


@both_backends
@pytest.mark.parametrize("ending", ["failure", "deadline", "cancellation"])
async def test_streams_are_flushed_and_closed_however_the_call_ends(make_host, family, ending):
    with_scope = anyio.CancelScope()

    @op("area.print", timeout=0.05 if ending == "deadline" else None)
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress("the end")
        await ctx.progress(message="almost")
        if ending == "failure":
            raise OpFailed("it broke")
        if ending == "cancellation":
            with_scope.cancel()
        await anyio.sleep_forever()

    reader = Reader()
    async with make_host(family("area", show)) as host:
        with with_scope, pytest.raises((OpFailed, OpTimeout)):
            await host.op("area.print", {}, on_progress=reader.take)
    assert reader.text() == "the end"
    assert [one.message for one in reader.of("progress")] == ["almost"]


@both_backends
async def test_reader_that_never_returns_does_not_keep_a_cancelled_call(make_host, family):
    reader = Reader(waits=True)
    scope = anyio.CancelScope()

    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        await ctx.progress(message="begun")
        await reader.began.wait()
        scope.cancel()
        await anyio.sleep_forever()

    async with make_host(family("area", show)) as host:
        with anyio.fail_after(20), scope:
            await host.op("area.print", {}, on_progress=reader.take)
    assert scope.cancelled_caught


@both_backends
async def test_rest_is_a_gap_if_the_reader_does_not_take_it_in_time(anyio_backend):
    reader = Reader(waits=True)
    progress = CallProgress("c1", "build", Redaction())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(progress.deliver, reader.take)
        progress.report("build", message="first")
        await reader.began.wait()
        progress.report("build", message="second")
        progress.report("build", message="third")
        progress.close(seconds=0.01)
        while len(reader.events) < 2:
            await anyio.lowlevel.checkpoint()
        reader.may_continue.set()
    assert [(one.message, one.gap, one.closed) for one in reader.events] == [
        ("first", None, False),
        (None, 2, False),
        (None, None, True),
    ]


async def test_failing_reader_affects_neither_the_op_nor_later_events(make_host, family, caplog):
    @op("area.work")
    async def work(params: Nothing, ctx: OpContext) -> str:
        await ctx.progress(current=1)
        await ctx.progress(current=2)
        return "done"

    seen = []

    def take(event):
        seen.append(event.current)
        raise RuntimeError("no display")

    async with make_host(family("area", work)) as host:
        assert await host.op("area.work", {}, on_progress=take) == "done"
    assert seen == [1, 2, None]
    assert [one.getMessage() for one in caplog.records if "progress" in one.getMessage()] == [
        "the consumer of the progress of area.work failed"
    ]


async def test_reader_that_cancels_itself_gets_later_events(make_host, family):
    @op("area.work")
    async def work(params: Nothing, ctx: OpContext) -> str:
        await ctx.progress(current=1)
        await ctx.progress(current=2)
        return "done"

    seen = []

    async def take(event):
        seen.append(event.current)
        raise asyncio.CancelledError  # such as awaiting a task that was cancelled

    async with make_host(family("area", work)) as host:
        assert await host.op("area.work", {}, on_progress=take) == "done"
    assert seen == [1, 2, None]


@both_backends
async def test_output_of_a_child_effect_arrives_with_its_source(make_host, family):
    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress(params.text)
        await ctx.progress(message=params.text)

    @op("area.outer")
    async def outer(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress("before ")
        await ctx.dispatch("area.print", {"text": "inside "})
        emit_tool_progress("after")

    reader = Reader()
    async with make_host(family("area", show, outer)) as host:
        await host.op("area.outer", {}, on_progress=reader.take)
    assert [(one.source, one.text) for one in reader.of("stdout")] == [
        ("area.outer", "before "),
        ("area.print", "inside "),
        ("area.outer", "after"),
    ]
    assert [(one.tool, one.source) for one in reader.of("progress")] == [("area.outer", "area.print")]


@both_backends
async def test_concurrent_calls_have_separate_streams(make_host, family):
    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        for _ in range(50):
            await emit_tool_progress(params.text)

    readers = {text: Reader() for text in "ab"}
    async with make_host(family("area", show)) as host, anyio.create_task_group() as tasks:
        for text, reader in readers.items():

            async def call(text=text, reader=reader):
                await host.op("area.print", {"text": text}, on_progress=reader.take)

            tasks.start_soon(call)
    assert {text: reader.text() for text, reader in readers.items()} == {"a": "a" * 50, "b": "b" * 50}
    assert len({event.call for reader in readers.values() for event in reader.events}) == 2


@both_backends
async def test_text_is_emitted_in_threads(make_host, family):
    reader = Reader()

    def compute(proceed):
        emit_tool_progress("begun ")
        proceed.wait()
        emit_tool_progress("done")

    @op("area.compute")
    async def work(params: Nothing, ctx: OpContext) -> None:
        proceed = threading.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, compute, proceed)
            await reader.began.wait()  # the thread wakes up the delivery
            proceed.set()

    async with make_host(family("area", work)) as host:
        with anyio.fail_after(20):
            await host.op("area.compute", {}, on_progress=reader.take)
    assert reader.text() == "begun done"


async def test_secret_that_is_split_is_redacted_in_each_stream(make_host, family):
    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        ctx.protect(CANARY, "canary")
        for character in f"is {CANARY}!":
            emit_tool_progress(character)
            await emit_tool_progress(character.upper(), "stderr")

    reader = Reader()
    async with make_host(family("area", show)) as host:
        await host.op("area.print", {}, on_progress=reader.take)
    assert reader.text() == "is [redacted:canary]!"
    assert reader.text("stderr") == f"IS {CANARY.upper()}!"


async def test_secret_is_redacted_if_another_source_prints_in_between(make_host, family):
    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        emit_tool_progress("child ")

    @op("area.outer")
    async def outer(params: Nothing, ctx: OpContext) -> None:
        ctx.protect(CANARY, "canary")
        emit_tool_progress(CANARY[:8])
        await ctx.dispatch("area.print", {})
        emit_tool_progress(CANARY[8:])

    reader = Reader()
    async with make_host(family("area", show, outer)) as host:
        await host.op("area.outer", {}, on_progress=reader.take)
    assert reader.text() == "child [redacted:canary]"


async def test_beginning_of_a_secret_that_does_not_continue_is_delivered_at_the_end(make_host, family):
    @op("area.print")
    async def show(params: Nothing, ctx: OpContext) -> None:
        ctx.protect(CANARY, "canary")
        emit_tool_progress(CANARY[:8])

    reader = Reader()
    async with make_host(family("area", show)) as host:
        await host.op("area.print", {}, on_progress=reader.take)
    assert reader.text() == CANARY[:8]


def test_output_outside_a_call_is_ignored():
    emit_tool_progress("text")
    emit_tool_progress_closed()


@pytest.mark.parametrize("stream", ["", "Stdout", "std out", "progress", "1st", "x" * 33, "a\n", None])
def test_invalid_name_of_a_stream_is_an_error(stream):
    with pytest.raises(ValueError, match="invalid name of a stream"):
        emit_tool_progress("text", stream)


def test_output_that_is_not_text_is_an_error():
    with pytest.raises(TypeError, match="`text` must be a str, got a bytes"):
        emit_tool_progress(b"text")
