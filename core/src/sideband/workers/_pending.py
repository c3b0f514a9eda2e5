"""The host's state of the calls in a worker: their dispatches, results and log limits."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import monotonic
from typing import Any

import anyio
from attrs import define, field

from ..ops import LimitExceeded, OpError
from ._calls import LogLine, NotBegun, WorkerCall
from ._ending import Deadlines, Ending
from ._errors import CallCancelled, CallError, ProtocolViolation, SkillFailed, SkillRefused
from ._wire import BegunMessage, DispatchMessage, ResultMessage
from .runtime import MAX_LINE, OutputAllowance, left_out

REPORT = "progress.report"
MAX_IN_FLIGHT = 32
MAX_DISPATCHES = 5_000
MAX_LINES = 10_000
MAX_TEXT = 4 * 1024 * 1024
_MAX_FINISHED = 4_096
_MAX_TRACEBACK = 20_000
_FRAME = r"^  {}([ -~]{{1,120}}):([0-9]{{1,9}}) in ([ -~]{{1,120}})$"


class CallLog:
    """The log of one call. It passes on at most 10,000 lines and 4 MiB, and counts the dropped lines.

    Args:
        emit: called with each line.
    """

    __slots__ = ("_allowance", "_emit")

    def __init__(self, emit: Callable[[LogLine], None]) -> None:
        self._emit = emit
        self._allowance = OutputAllowance(MAX_LINES, MAX_TEXT)

    def add(self, stream: str, text: str) -> bool:
        """Pass a line on, or count it as dropped. Return whether the whole line was passed on."""
        is_whole = len(text) <= MAX_LINE
        if not is_whole:
            text = left_out(len(text))
        if not self._allowance.take(text):
            self._allowance.dropped += 1
            return False
        self._emit(LogLine(stream, text))
        return is_whole

    def close(self) -> None:
        """Emit a note with the number of dropped lines."""
        if self._allowance.dropped:
            self._emit(LogLine("note", f"{self._allowance.dropped:,} more lines dropped"))
            self._allowance.dropped = 0


@define(eq=False, repr=False)
class PendingDispatch:
    """A dispatch that was admitted and has not ended.

    Attributes:
        call: the call that requested it.
        message: the message of the worker.
        size: the number of bytes that it holds: the size of the message, and later also of the answer.
        scope: the cancel scope of the dispatch.
        missed: the number of progress reports that were refused before it.
    """

    call: PendingCall
    message: DispatchMessage
    size: int
    scope: anyio.CancelScope
    missed: int = 0


@define(eq=False, repr=False)
class PendingCall:
    """A running call in a worker.

    Attributes:
        spec: the requested call.
        log: the log of the call.
        ending: its end, with a result or an error.
        value: the return value.
        size: the size of the result message in bytes.
        error: a factory for the error, or ``None`` if the call returned.
        where: the file, line and function where the call raised an exception or was cancelled, if known.
        dispatches: the running dispatches, by id.
        silent: those dispatches that are fire-and-forget. The first one is running, the others are queued.
        missed: the number of progress reports that were refused since the last one that was admitted.
        total: the number of dispatches requested so far.
        begin_by: the time by ``time.monotonic`` after which the worker does not begin it, or ``None`` if it begins at
            once, because the worker had no other calls.
        begun: whether it has begun, according to the worker.
        settled: whether the worker has sent the result, or that it was late.
    """

    spec: WorkerCall
    log: CallLog
    begin_by: float | None
    ending: Ending
    begun: bool = field(init=False)
    settled: bool = field(default=False, init=False)
    value: Any = field(default=None, init=False)
    size: int = field(default=0, init=False)
    error: Callable[[], Exception] | None = field(default=None, init=False)
    where: str = field(default="", init=False)
    dispatches: dict[str, PendingDispatch] = field(factory=dict, init=False)
    silent: deque[PendingDispatch] = field(factory=deque, init=False)
    missed: int = field(default=0, init=False)
    total: int = field(default=0, init=False)
    _next_end: anyio.Event | None = field(default=None, init=False)

    @begun.default
    def _begins_at_once(self) -> bool:
        return self.begin_by is None

    @property
    def never_begins(self) -> bool:
        """Whether the worker has not begun it, and must not begin it anymore."""
        return not self.begun and self.begin_by is not None and monotonic() > self.begin_by

    def admit(self, op: str, *, silent: bool) -> LimitExceeded | None:
        """Count a dispatch, and return the error if it exceeds a limit.

        Fire-and-forget dispatches have their own limit, because a skill cannot know when they have ended.
        """
        self.total += 1
        if self.total > MAX_DISPATCHES:
            return LimitExceeded("dispatches", MAX_DISPATCHES, op=op)
        unanswered = len(self.silent)
        if (unanswered if silent else len(self.dispatches) - unanswered) >= MAX_IN_FLIGHT:
            return LimitExceeded("in_flight", MAX_IN_FLIGHT, op=op, retryable=True)
        return None

    def miss(self, op: str) -> None:
        """Count a fire-and-forget dispatch that was refused, if it is a progress report."""
        if op != REPORT:
            return
        if self.silent:
            self.missed += 1
        else:
            self.spec.handler.missed(1)

    def take_missed(self) -> int:
        """Return the number of refused progress reports, and begin to count again."""
        missed, self.missed = self.missed, 0
        return missed

    def discard(self, dispatch: PendingDispatch) -> None:
        """Remove a dispatch that has ended."""
        del self.dispatches[dispatch.message.id]
        if self._next_end is not None:
            self._next_end.set()

    def end(self, value: Any = None, error: Callable[[], Exception] | None = None) -> None:
        """Set the result or the error. Later calls have no effect."""
        if not self.ending.has_come:
            self.value = value
            self.error = error
            self.ending.come()

    def cancel_dispatches(self) -> None:
        """Cancel the running dispatches, and revoke what they dispatch themselves."""
        self.spec.handler.revoke()
        for dispatch in self.dispatches.values():
            dispatch.scope.cancel()

    async def wait_for_silent(self, seconds: float) -> None:
        """Wait at most ``seconds`` for fire-and-forget dispatches, because the skill itself cannot wait for them."""
        with anyio.move_on_after(seconds):
            while self.silent:
                await self._wait_for_next_end()

    async def end_dispatches(self) -> None:
        """Cancel the running dispatches, and wait until they have ended."""
        with anyio.CancelScope(shield=True):
            while self.dispatches:
                self.cancel_dispatches()
                await self._wait_for_next_end()

    async def _wait_for_next_end(self) -> None:
        self._next_end = anyio.Event()
        await self._next_end.wait()


class PendingCalls:
    """The running calls of a worker, and the ids of recently finished ones."""

    def __init__(self) -> None:
        self._calls: dict[str, PendingCall] = {}
        # The value is whether the result has arrived. The host may have abandoned the call before.
        self._finished: OrderedDict[str, bool] = OrderedDict()
        self._deadlines = Deadlines()

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[PendingCall]:
        return iter(self._calls.values())

    def add(self, spec: WorkerCall, begin_by: float | None) -> PendingCall:
        """Add a call that is sent to the worker."""
        ending = Ending(self._deadlines)
        call = self._calls[spec.id] = PendingCall(spec, CallLog(spec.handler.log), begin_by, ending)
        return call

    def forget(self, call: PendingCall) -> None:
        """Remove a call that has ended, but keep its id."""
        del self._calls[call.spec.id]
        self._finished[call.spec.id] = call.settled
        if len(self._finished) > _MAX_FINISHED:
            self._finished.popitem(last=False)

    def find(self, identifier: str) -> PendingCall | None:
        """Return the call with that id, or ``None`` if it has ended.

        Raises:
            ProtocolViolation: if the id is unknown.
        """
        call = self._calls.get(identifier)
        if call is None and identifier not in self._finished:
            raise ProtocolViolation("it refers to an unknown call")
        if call is not None:
            call.begun = True
        return call

    def mark(self, message: BegunMessage) -> None:
        """Mark a call as begun, or end it with ``NotBegun`` if the worker was too late to begin it.

        Raises:
            ProtocolViolation: if a call that may have had effects is claimed to be late: it would be repeated.
        """
        call = self.find(message.call)
        if not message.is_late:
            return
        if call is not None:
            call.begun = False
            if call.total or not call.never_begins:
                raise ProtocolViolation("it did not begin a call in time that it has begun")
        self._settle(message.call, error=NotBegun)

    def settle(self, result: ResultMessage, size: int) -> None:
        """Set the result of a call.

        Raises:
            ProtocolViolation: if the call already has a result, or never existed.
        """
        call = self.find(result.call)
        error = result.error
        if call is not None:
            call.size = size
            call.where = _innermost(call.spec, error.get("traceback", "")) if error else ""
        self._settle(
            result.call,
            result.value,
            None if error is None or call is None else partial(_call_error, call.spec.tool, call.where, error),
        )

    def _settle(self, identifier: str, value: Any = None, error: Callable[[], Exception] | None = None) -> None:
        call = self._calls.get(identifier)
        if call.settled if call is not None else self._finished[identifier]:
            raise ProtocolViolation("it sent two results for a call")
        if call is None:
            self._finished[identifier] = True
            return
        call.settled = True
        call.end(value, error)


def _call_error(tool: str, where: str, error: Mapping[str, Any]) -> CallError:
    code, message = error["code"], error.get("message", "")
    if code == "call.cancelled":
        return CallCancelled(tool)
    if code == "skill.refused":
        refused = SkillRefused(f"{tool}: {message}")
        refused.topic = error.get("topic", "")
        return refused
    failed = SkillFailed(tool, message, traceback=error.get("traceback", ""), where=where)
    failed.topic = error.get("topic", "")
    if code == "skill.import":
        failed.code = code
    if "cause" in error:
        cause = error["cause"]
        failed.__cause__ = OpError(cause.get("message", ""), code=cause.get("code"), op=cause.get("op"))
    return failed


def _innermost(spec: WorkerCall, traceback: str) -> str:
    """Return the innermost file, line and function of the skill in a traceback, or an empty string."""
    found = re.findall(_FRAME.format(re.escape(f"{spec.launch.snapshot}/")), traceback[-_MAX_TRACEBACK:], re.MULTILINE)
    return "{}, line {}, in {}".format(*found[-1]) if found else ""
