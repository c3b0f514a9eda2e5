"""Carry the progress of one call to its consumer, in order and in bounded memory."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

import anyio
from anyio import get_cancelled_exc_class
from anyio.lowlevel import checkpoint
from attrs import define, field

from ..contexts._progress import REPORTS, current_writer
from ..hooks import ToolProgress
from ..hooks._dispatch import cancelled_itself
from ..rendering import whole_characters
from ._progress_streams import FLUSH_BYTES, FLUSH_SECONDS, Chunk, Report, ReportStream, TextStream
from ._redaction import Redaction
from ._streams import TextRedaction

_log = logging.getLogger("sideband.broker")

MAX_WAITING_BYTES = 1 << 20
"""The maximum size of the text of a call that waits for its consumer."""
MAX_WAITING_REPORTS = 1_000
"""The maximum number of reports of a call that wait for its consumer."""
MAX_STREAMS = 16
"""The maximum number of streams of text of a call, besides ``other``."""
MAX_MESSAGE = 2_000
"""The maximum length of the message of a report in characters."""
DRAIN_SECONDS = 5.0
"""The time in seconds that a consumer has for what waits when a call ends."""
_ABORT_SECONDS = 0.5
_CLOSING_SECONDS = 0.5
_MAX_UNIT = 32
_PIECE = 16_384
_OTHER = "other"

TakeProgress = Callable[[ToolProgress], Awaitable[object] | object]
"""Takes the events of a call, one after the other. The result is awaited if it is awaitable."""


class CallProgress:
    """The progress of one call. Texts and reports can be added from any thread, which never waits for the consumer.

    Its memory is bounded. If the consumer is slow, the oldest text or reports of a stream are dropped, and a gap with
    their size is delivered in their place.

    Args:
        call: the id of the call.
        tool: the name of the tool, or of the op for a call without a tool.
        redactor: the redaction of the host.
        texts: whether the consumer wants texts.
        size: the maximum size of the waiting text in bytes.
        reports: the maximum number of waiting reports.
        seconds: the time for which text is collected; 0 to deliver it at once.
        limit: the maximum size of the text of one event in bytes.

    Attributes:
        tool: see above.
    """

    def __init__(
        self,
        call: str,
        tool: str,
        redactor: Redaction,
        *,
        texts: bool = True,
        size: int = MAX_WAITING_BYTES,
        reports: int = MAX_WAITING_REPORTS,
        seconds: float = FLUSH_SECONDS,
        limit: int = FLUSH_BYTES,
    ) -> None:
        self.tool = tool
        self._call = call
        self._redactor = redactor
        self._takes_texts = texts
        self._size = size
        self._new_stream = partial(TextStream, seconds, limit)
        self._reports = ReportStream(reports)
        self._texts: dict[str, TextStream] = {}
        self._streams: list[tuple[str, TextStream | ReportStream]] = []  # in the order of their turns
        self._writers: set[_Writer] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._has_failed = False
        self._wake: anyio.Event | None = None
        self._scope: anyio.CancelScope | None = None
        self._deadline = float("inf")
        self._thread = threading.get_ident()
        self._run_soon = _run_soon()

    @property
    def has_reports(self) -> bool:
        """Whether a report waits, and not only gaps."""
        return self._reports.count > 0

    def report(
        self,
        source: str,
        *,
        current: float | None = None,
        total: float | None = None,
        message: str | None = None,
        unit: str | None = None,
    ) -> None:
        """Add a report, which is redacted. An empty one, and one after the end of the call, is ignored.

        Args:
            source: the op or tool that reports.
            current, total: the current and the final value.
            message: one line for display. Its end is omitted if it is too long.
            unit: the unit of the values.
        """
        if current is None and total is None and message is None:
            return
        # Redacted before they are cut: half of a secret would not be recognized.
        message = None if message is None else self._redactor.text(whole_characters(message))[:MAX_MESSAGE]
        unit = None if unit is None else self._redactor.text(whole_characters(unit))[:_MAX_UNIT]
        self._add_report(Report(source, current, total, message, unit))

    def lose(self, reports: int) -> None:
        """Add a gap for reports that were lost on their way to the call."""
        self._add_report(reports)

    def _add_report(self, report: Report | int) -> None:
        with self._lock:
            if self._is_closed:
                return
            if not self._reports.offset and not self._reports.lost and not self._reports.waiting:
                self._streams.append((REPORTS, self._reports))
            self._reports.add(report)
            self._notify()

    @contextmanager
    def writing(self, source: str, *, is_root: bool = False) -> Iterator[None]:
        """Let ``emit_tool_progress`` write to the progress of the call within the block.

        Args:
            source: the tool or op that runs in the block.
            is_root: whether it is the tool or op of the call, which may close its streams.
        """
        if not self._takes_texts:
            with unobserved():
                yield
            return
        writer = _Writer(self, source, is_root)
        with self._lock:
            self._writers.add(writer)
        outer = current_writer.set(writer)
        try:
            yield
        finally:
            current_writer.reset(outer)
            writer.end()

    def write(self, writer: _Writer, text: str, stream: str) -> None:
        """Add text of a writer to a stream. It is redacted first, so that a gap never cuts a secret in two."""
        for start in range(0, len(text), _PIECE):
            with self._lock:
                if self._is_closed or writer.has_ended:
                    return
                name = stream if stream in self._texts or len(self._texts) < MAX_STREAMS else _OTHER
                if name not in self._texts:
                    self._texts[name] = opened = self._new_stream()
                    self._streams.append((name, opened))
                if name not in writer.redactions:
                    writer.redactions[name] = TextRedaction(self._redactor)
                self._add(name, writer.source, writer.redactions[name].feed(text[start : start + _PIECE]))

    def end_writer(self, writer: _Writer, *, and_streams: bool = False) -> None:
        """End what a writer emits, and add the text that was held back for redaction.

        Args:
            writer: the writer.
            and_streams: whether to close all streams of text too.
        """
        with self._lock:
            for one in tuple(self._writers) if and_streams else (writer,):
                self._flush(one)
            for stream in self._texts.values() if and_streams else ():
                stream.is_closing = True
            if and_streams:
                self._notify()

    def close(self, seconds: float = DRAIN_SECONDS) -> None:
        """End the call: what is added later is ignored, and the consumer gets the rest. Call it in the event loop.

        Args:
            seconds: the time that the consumer has for the rest. After it, the rest becomes gaps.
        """
        with self._lock:
            for writer in tuple(self._writers):
                self._flush(writer)
            self._is_closed = True
            for _, stream in self._streams:
                stream.is_closing = True
            self._notify()
        self._deadline = anyio.current_time() + seconds
        if self._scope is not None:
            self._scope.deadline = self._deadline

    async def deliver(self, take: TakeProgress) -> None:
        """Deliver all events until the progress is closed and the last event was taken.

        It is shielded from cancellation, so that streams are closed, and returns soon after ``close`` was called.
        """
        with anyio.CancelScope(shield=True, deadline=self._deadline) as self._scope:
            await self._deliver(take)
        if self._scope.cancelled_caught:
            with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
                for _, stream in self._streams:
                    stream.drop()
                await self._deliver(take)

    async def _deliver(self, take: TakeProgress) -> None:
        while True:
            with self._lock:
                event = self._next(anyio.current_time())
                if event is None:
                    if self._is_closed:
                        return
                    self._wake = wake = anyio.Event()
                    due = min([one.due for one in self._texts.values() if one.due is not None], default=None)
            if event is not None:
                await self._hand_over(take, event)
                continue
            with anyio.move_on_after(None if due is None else due - anyio.current_time()):
                await wake.wait()

    async def _hand_over(self, take: TakeProgress, event: ToolProgress) -> None:
        try:
            answer: Any = take(event)
            if hasattr(answer, "__await__"):
                await answer
        except (Exception, get_cancelled_exc_class()) as error:
            if not isinstance(error, Exception) and not cancelled_itself():
                raise  # all others must not affect the call
            if not self._has_failed:
                self._has_failed = True
                _log.warning("the consumer of the progress of %s failed", self.tool, exc_info=True)
        await checkpoint()  # a consumer that never waits must not delay other tasks

    def _next(self, now: float) -> ToolProgress | None:
        """Return the next event. The streams take turns."""
        for turn in self._streams:
            event = self._next_of(*turn, now)
            if event is not None:
                self._streams.remove(turn)
                if not event.closed:
                    self._streams.append(turn)
                return event
        return None

    def _next_of(self, name: str, stream: TextStream | ReportStream, now: float) -> ToolProgress | None:
        offset = stream.offset
        one: Chunk | Report | int | None = stream.lost or stream.next(now)
        if isinstance(one, int):
            stream.lost = 0
            stream.offset += one
            return ToolProgress(self._call, self.tool, name, offset, gap=one)
        if one is None:
            return ToolProgress(self._call, self.tool, name, offset, closed=True) if stream.is_closing else None
        if isinstance(one, Report):
            stream.offset += 1
            values = (one.current, one.total, one.message, one.unit)
            return ToolProgress(self._call, self.tool, name, offset, one.source, None, *values)
        stream.offset += one.size
        return ToolProgress(self._call, self.tool, name, offset, one.source, one.text)

    def _flush(self, writer: _Writer) -> None:
        """End a writer. The caller holds the lock."""
        self._writers.discard(writer)
        writer.has_ended = True
        for name, redaction in writer.redactions.items():
            self._add(name, writer.source, redaction.end())
        writer.redactions.clear()

    def _add(self, name: str, source: str, text: str) -> None:
        """Add redacted text to an open stream. The caller holds the lock."""
        stream = self._texts[name]
        if not text or stream.is_closing:
            return
        is_news = stream.add(source, text)
        waiting = sum([one.weight for one in self._texts.values()])
        while waiting > self._size:
            waiting -= max(self._texts.values(), key=lambda one: one.weight).drop_oldest()
        if is_news:
            self._notify()

    def _notify(self) -> None:
        """Wake up ``deliver``, once for each time that it waits. The caller holds the lock."""
        wake, self._wake = self._wake, None
        if wake is None:
            return
        if threading.get_ident() == self._thread:
            wake.set()
        else:
            with suppress(RuntimeError):  # the event loop has ended
                self._run_soon(wake.set)


@define(eq=False)
class _Writer:
    """The output of one tool or op of a call. Each of its streams is redacted as one text."""

    _progress: CallProgress
    source: str
    _is_root: bool
    has_ended: bool = field(default=False, init=False)
    redactions: dict[str, TextRedaction] = field(factory=dict, init=False)

    def write(self, text: str, stream: str) -> None:
        """See ``ProgressWriter.write``."""
        self._progress.write(self, whole_characters(text), stream)

    def close(self) -> None:
        """See ``ProgressWriter.close``."""
        self._progress.end_writer(self, and_streams=self._is_root)

    def end(self) -> None:
        """End the output. Its tool or op has ended."""
        self._progress.end_writer(self)


@contextmanager
def unobserved() -> Iterator[None]:
    """Let ``emit_tool_progress`` do nothing within the block."""
    outer = current_writer.set(None)
    try:
        yield
    finally:
        current_writer.reset(outer)


@asynccontextmanager
async def delivered(progress: CallProgress, take: TakeProgress) -> AsyncIterator[CallProgress]:
    """Deliver the progress of a call that runs within the block, in a task, and close it after the block.

    An exception of the block is raised as it is, after the last event was taken.

    Args:
        progress: the progress of the call.
        take: the consumer. Its exceptions are logged.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(progress.deliver, take)
        seconds = _ABORT_SECONDS
        try:
            yield progress
            seconds = DRAIN_SECONDS
        except Exception as error:  # noqa: BLE001  raised again outside the task group, which would wrap it
            failure, seconds = error, DRAIN_SECONDS
        finally:
            progress.close(seconds)
    if failure is not None:
        raise failure


def _run_soon() -> Callable[[Callable[[], None]], object]:
    """Return a function that calls another one in the current event loop, from any thread, without waiting."""
    import asyncio  # noqa: PLC0415  slow to import, and not used on trio

    if get_cancelled_exc_class() is asyncio.CancelledError:
        return asyncio.get_running_loop().call_soon_threadsafe
    soon: Callable[[Callable[[], None]], object] = sys.modules["trio"].lowlevel.current_trio_token().run_sync_soon
    return soon
