"""The progress of a call loses nothing without a gap, whatever is sent and however slow the reader is."""

import asyncio
import threading
from contextvars import copy_context
from functools import partial

import anyio
import anyio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.broker import CallProgress, Redaction, delivered
from sideband.broker._progress_streams import FLUSH_SECONDS, TextStream
from sideband.tools import emit_tool_progress

MOST_BYTES, MOST_REPORTS = 40_000, 5

pieces = st.text(st.sampled_from("a\né漢😀\0"), min_size=1, max_size=20)
steps = st.one_of(
    st.tuples(st.just("text"), st.sampled_from(["stdout", "stderr"]), pieces, st.sampled_from([1, 7, 3_000, 9_000])),
    st.tuples(st.just("reports"), st.integers(1, 12)),
    st.tuples(st.just("read"), st.integers(1, 5)),
    st.tuples(st.just("wait")),
)


class Reader:
    """A reader that takes an event only when it is allowed to."""

    def __init__(self):
        self.events = []
        self.allowed = anyio.Semaphore(0)
        self.is_free = False

    async def take(self, event):
        self.events.append(event)
        if not self.is_free:
            await self.allowed.acquire()


async def send(plan, reader):
    """Send texts and reports, and return what was sent by stream."""
    sent = {"stdout": "", "stderr": "", "progress": []}
    progress = CallProgress("c1", "build", Redaction(), size=MOST_BYTES, reports=MOST_REPORTS)
    async with delivered(progress, reader.take):
        with progress.writing("build"):
            for step, *values in plan:
                if step == "text":
                    stream, text, times = values
                    emit_tool_progress(text * times, stream)
                    sent[stream] += text * times
                elif step == "reports":
                    for _ in range(values[0]):
                        progress.report("build", current=len(sent["progress"]))
                        sent["progress"].append(len(sent["progress"]))
                elif step == "read":
                    for _ in range(values[0]):
                        reader.allowed.release()
                else:
                    await anyio.lowlevel.checkpoint()
        reader.is_free = True
        reader.allowed.release()
    return sent


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=30))
def test_each_byte_and_report_is_received_in_order_or_counted_in_a_gap(plan):
    reader = Reader()
    sent = anyio.run(send, plan, reader)
    for stream in ("stdout", "stderr"):
        data = sent[stream].encode()
        assert check(reader.events, stream, lambda one: one.text.encode(), data) == len(data)
    assert check(reader.events, "progress", lambda one: [int(one.current)], sent["progress"]) == len(sent["progress"])


def check(events, stream, content, sent):
    """Check that events continue each other and equal what was sent. Return the last offset."""
    events = [one for one in events if one.stream == stream]
    offset = 0
    for one in events:
        assert one.offset == offset
        assert sum([one.text is not None, one.current is not None, one.gap is not None, one.closed]) == 1
        if one.gap is not None:
            assert one.gap > 0
            offset += one.gap
        elif not one.closed:
            received = content(one)
            assert received == sent[offset : offset + len(received)]
            offset += len(received)
    assert [one.closed for one in events] == ([False] * (len(events) - 1) + [True] if sent else [])
    return offset


async def flood(reader):
    """Send much text in two streams to a reader that does not read, and return the largest amount that waited."""
    progress = CallProgress("c1", "build", Redaction(), size=MOST_BYTES, reports=MOST_REPORTS)
    async with delivered(progress, reader.take):
        with progress.writing("build"):
            for number in range(200):
                emit_tool_progress("é" * 1_000, "stdout")
                emit_tool_progress("x" * 50, "stderr")
                progress.report("build", current=number)
                await anyio.lowlevel.checkpoint()
        reader.is_free = True
        reader.allowed.release()


def test_waiting_progress_is_bounded_and_a_large_stream_does_not_displace_a_small_one():
    reader = Reader()
    anyio.run(flood, reader)
    texts = [one for one in reader.events[1:] if one.text is not None]
    assert sum(len(one.text.encode()) for one in texts) <= MOST_BYTES
    assert [one.gap for one in reader.events if one.stream == "stderr" and one.gap] == []
    assert len([one for one in reader.events if one.current is not None]) <= MOST_REPORTS + 1


async def collected(send, take=None, **limits):
    """Return the events of a call whose progress ``send`` adds before any of it is delivered."""
    events = []
    progress = CallProgress("c1", "build", Redaction(), **limits)

    def collect(event):
        events.append(event)
        if take is not None:
            take(event)

    async with delivered(progress, collect):
        with progress.writing("build"):
            send(progress)
    return events


def test_each_short_text_is_collected_for_the_same_time():
    stream, taken = TextStream(), []
    for now in (0.0, 10.0):
        stream.add("build", "x")
        taken += [stream.next(now + later) is not None for later in (0.0, 0.9 * FLUSH_SECONDS, 1.1 * FLUSH_SECONDS)]
    assert taken == [False, False, True] * 2


def test_text_is_delivered_at_once_if_the_time_is_zero():
    stream = TextStream(seconds=0)
    stream.add("build", "x")
    assert stream.next(0.0).text == "x"


def test_size_of_a_text_that_is_delivered_at_once_can_be_chosen():
    stream = TextStream(seconds=60, limit=8)
    stream.add("build", "abcdéfgh" * 2)
    texts = [one.text for one in iter(lambda: stream.next(0.0), None)]
    assert texts == ["abcdéfg", "habcdéf"]
    assert all(len(text.encode()) <= 8 for text in texts)


def test_streams_take_turns():
    def send(progress):
        emit_tool_progress("x" * 20 * 16_384)
        progress.report("build", message="begun")

    events = anyio.run(collected, send)
    assert [event.stream for event in events[:3]] == ["stdout", "progress", "stdout"]


def test_short_texts_of_sources_that_take_turns_are_bounded_too():
    def send(progress):
        outer = copy_context()
        with progress.writing("child"):
            for _ in range(5_000):
                outer.run(emit_tool_progress, "x")
                emit_tool_progress("y")

    events = anyio.run(partial(collected, send, size=MOST_BYTES))
    texts = [event.text for event in events if event.text is not None]
    assert events[0].gap == 10_000 - len(texts)
    assert 100 < len(texts) <= MOST_BYTES // 100


def test_newest_report_is_known_as_such_if_later_ones_were_lost():
    newest = []

    async def send(limit):
        progress = CallProgress("c1", "build", Redaction(), reports=limit)

        def take(event):
            if event.current is not None and not progress.has_reports:
                newest.append((limit, event.current))

        async with delivered(progress, take):
            for number in range(3):
                progress.report("build", current=number)
            progress.lose(2)

    for limit in (1, 1_000):
        anyio.run(send, limit)
    assert newest == [(1, 2), (1_000, 2)]


async def wake_ups():
    """Report often from a thread while the event loop is busy. Return how often the thread woke it up."""
    loop = asyncio.get_running_loop()
    wake_up, woken = loop.call_soon_threadsafe, []
    loop.call_soon_threadsafe = lambda *arguments: (woken.append(1), wake_up(*arguments))[1]
    progress = CallProgress("c1", "build", Redaction())
    async with delivered(progress, lambda _: None):
        await anyio.wait_all_tasks_blocked()
        thread = threading.Thread(target=lambda: [progress.report("build", current=number) for number in range(500)])
        thread.start()
        thread.join()
    return len(woken)


def test_thread_wakes_up_a_busy_event_loop_once():
    assert anyio.run(wake_ups) == 1


def test_reports_that_were_lost_on_their_way_are_counted_if_their_gap_is_dropped_too():
    def send(progress):
        progress.lose(5)
        for number in range(4):
            progress.report("build", current=number)

    events = anyio.run(partial(collected, send, reports=2))
    assert [(event.gap, event.current) for event in events[:-1]] == [(7, None), (None, 2), (None, 3)]


async def ticks_during_delivery():
    """Return how far another task came until each event was delivered to a reader that never waits."""
    ticks, seen = 0, []

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await anyio.lowlevel.checkpoint()

    def send(progress):
        for number in range(100):
            progress.report("build", current=number)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        await collected(send, lambda _: seen.append(ticks))
        tasks.cancel_scope.cancel()
    return seen


def test_many_events_do_not_delay_other_tasks():
    seen = anyio.run(ticks_during_delivery)
    assert seen[-1] - seen[0] >= 50


async def awaited_output():
    """Emit large texts, await each, and return the number of those that were delivered before the last."""
    events = []
    progress = CallProgress("c1", "build", Redaction())
    async with delivered(progress, events.append):
        with progress.writing("build"):
            for _ in range(50):
                await emit_tool_progress("x" * 16_384)
            return len(events)


def test_awaiting_the_output_lets_observers_run():
    assert anyio.run(awaited_output) > 0


def test_message_of_a_report_is_redacted_before_it_is_cut():
    redactor = Redaction()
    redactor.protect("s3cr3t-canary-value", "canary")
    events = []

    async def report():
        own = CallProgress("c1", "build", redactor)
        async with delivered(own, events.append):
            own.report("build", message=f"{'x' * 1_990}s3cr3t-canary-value")

    anyio.run(report)
    assert events[0].message == f"{'x' * 1_990}[redacted:"
