"""The host's record of the calls in a worker: the dispatches that each waits for, and what each may print."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import anyio
from attrs import define, field

from ..ops import LimitExceeded, OpError
from ._calls import LogLine, WorkerCall
from ._errors import CallCancelled, CallError, ProtocolViolation, SkillFailed, SkillRefused
from ._wire import DispatchMessage, ResultMessage
from .runtime import MAX_LINE, OutputAllowance, left_out

MAX_IN_FLIGHT = 32
MAX_DISPATCHES = 5_000
MAX_LINES = 10_000
MAX_TEXT = 4 * 1024 * 1024
_MAX_FINISHED = 4_096


class CallLog:
    """The log of one call: passes on 10,000 lines and 4 MiB at most, then counts.

    Args:
        emit: takes each line.
    """

    __slots__ = ("_allowance", "_emit")

    def __init__(self, emit: Callable[[LogLine], None]) -> None:
        self._emit = emit
        self._allowance = OutputAllowance(MAX_LINES, MAX_TEXT)

    def add(self, stream: str, text: str) -> bool:
        """Pass a line on, or count it. Whether all of it was passed on."""
        is_whole = len(text) <= MAX_LINE
        if not is_whole:
            text = left_out(len(text))
        if not self._allowance.take(text):
            self._allowance.dropped += 1
            return False
        self._emit(LogLine(stream, text))
        return is_whole

    def close(self) -> None:
        """Declare what was dropped."""
        if self._allowance.dropped:
            self._emit(LogLine("note", f"{self._allowance.dropped:,} more lines were dropped"))
            self._allowance.dropped = 0


@define(eq=False, repr=False)
class PendingDispatch:
    """A dispatch that was admitted and has not ended.

    Attributes:
        call: that asks for it.
        message: as it came.
        size: bytes that it holds: those of the line that it came in, then those of its answer too.
        scope: cancels it.
    """

    call: PendingCall
    message: DispatchMessage
    size: int
    scope: anyio.CancelScope = field(factory=anyio.CancelScope, init=False)


@define(eq=False, repr=False)
class PendingCall:
    """One call that a worker has and has not ended.

    Attributes:
        spec: what was asked for.
        log: where its output goes.
        ended: set once it has a result or an error.
        value: what it returned.
        size: bytes of the line that said so.
        error: makes what it raises; ``None`` if it returned.
        dispatches: its dispatches that run, by id.
        silent: those of them that nobody waits for, the one that runs first.
        total: how many dispatches it has asked for.
    """

    spec: WorkerCall
    log: CallLog
    ended: anyio.Event = field(factory=anyio.Event, init=False)
    value: Any = field(default=None, init=False)
    size: int = field(default=0, init=False)
    error: Callable[[], Exception] | None = field(default=None, init=False)
    dispatches: dict[str, PendingDispatch] = field(factory=dict, init=False)
    silent: deque[PendingDispatch] = field(factory=deque, init=False)
    total: int = field(default=0, init=False)
    _next_end: anyio.Event | None = field(default=None, init=False)

    def admit(self, op: str, *, silent: bool) -> LimitExceeded | None:
        """Count a dispatch. Returns why it is refused, if it is.

        Those that nobody waits for have a limit of their own: a skill can't know when they have ended.
        """
        self.total += 1
        if self.total > MAX_DISPATCHES:
            return LimitExceeded("dispatches", MAX_DISPATCHES, op=op)
        unanswered = len(self.silent)
        if (unanswered if silent else len(self.dispatches) - unanswered) >= MAX_IN_FLIGHT:
            return LimitExceeded("in_flight", MAX_IN_FLIGHT, op=op, retryable=True)
        return None

    def discard(self, dispatch: PendingDispatch) -> None:
        """Note that a dispatch has ended."""
        del self.dispatches[dispatch.message.id]
        if self._next_end is not None:
            self._next_end.set()

    def end(self, value: Any = None, error: Callable[[], Exception] | None = None) -> None:
        """Settle it. Only the first time counts."""
        if not self.ended.is_set():
            self.value = value
            self.error = error
            self.ended.set()

    def cancel_dispatches(self) -> None:
        """Cancel the dispatches that still run."""
        for dispatch in self.dispatches.values():
            dispatch.scope.cancel()

    async def let_silent_end(self, seconds: float) -> None:
        """Give the dispatches that nobody waits for time to end: the skill itself could not wait for them."""
        with anyio.move_on_after(seconds):
            while self.silent:
                await self._wait_for_next_end()

    async def end_dispatches(self) -> None:
        """Cancel the dispatches that still run, and wait for them."""
        with anyio.CancelScope(shield=True):
            while self.dispatches:
                self.cancel_dispatches()
                await self._wait_for_next_end()

    async def _wait_for_next_end(self) -> None:
        self._next_end = anyio.Event()
        await self._next_end.wait()


class PendingCalls:
    """The calls that a worker has, and the ids of those that it had."""

    def __init__(self) -> None:
        self._calls: dict[str, PendingCall] = {}
        # Whether its result has come; the host may have given the call up before.
        self._finished: OrderedDict[str, bool] = OrderedDict()

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[PendingCall]:
        return iter(self._calls.values())

    def add(self, spec: WorkerCall) -> PendingCall:
        """Note a call that the worker gets."""
        call = self._calls[spec.id] = PendingCall(spec, CallLog(spec.handler.log))
        return call

    def forget(self, call: PendingCall) -> None:
        """Keep only the id of a call that is over."""
        del self._calls[call.spec.id]
        self._finished[call.spec.id] = call.ended.is_set()
        if len(self._finished) > _MAX_FINISHED:
            self._finished.popitem(last=False)

    def find(self, identifier: str) -> PendingCall | None:
        """The call of that id, ``None`` if it has ended.

        Raises:
            ProtocolViolation: the id is made up.
        """
        call = self._calls.get(identifier)
        if call is None and identifier not in self._finished:
            raise ProtocolViolation("it names a call that it was never given")
        return call

    def settle(self, result: ResultMessage, size: int) -> None:
        """Give a call its result.

        Raises:
            ProtocolViolation: it has one, or there never was such a call.
        """
        call = self.find(result.call)
        if call is not None and not call.ended.is_set():
            error = result.error
            call.size = size
            call.end(result.value, None if error is None else partial(_call_error, call.spec.tool, error))
        elif call is None and not self._finished[result.call]:
            self._finished[result.call] = True
        else:
            raise ProtocolViolation("a call has two results")


def _call_error(tool: str, error: Any) -> CallError:
    code, message = error["code"], error.get("message", "")
    if code == "skill.refused":
        return SkillRefused(f"{tool}: {message}")
    if code == "call.cancelled":
        return CallCancelled(tool)
    failed = SkillFailed(tool, message, traceback=error.get("traceback", ""))
    if code == "skill.import":
        failed.code = code
    failed.hint = _hint(tool, message) or failed.hint
    if "cause" in error:
        cause = error["cause"]
        failed.__cause__ = OpError(cause.get("message", ""), code=cause.get("code"), op=cause.get("op"))
    return failed


def _hint(tool: str, message: str) -> str:
    """What to do about what newcomers meet first in a worker."""
    kind = message.partition(":")[0]
    if kind == "ModuleNotFoundError":
        return (
            "a worker has Python's own modules and the skill's: name the package that brings it in a `# /// script` "
            f"block of the skill, and run `sideband skills install {tool.partition('.')[0]}`"
        )
    if kind in ("PermissionError", "FileNotFoundError", "gaierror"):
        return (
            "a worker has no files but the skill's own, no network and no programs: ask for them with ops, as in "
            "`from sideband.skill import http`; `sideband ops list` shows which there are"
        )
    return ""
