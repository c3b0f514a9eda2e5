"""Detect that the event loop of a worker is blocked, and find the code that blocks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import anyio
from attrs import define, field

from ..sandboxing import LaunchRequest, WorkerProcess
from ._calls import NotBegun
from ._errors import ProtocolViolation
from ._pending import PendingCall, PendingCalls
from .runtime import CALL_FILE

BEGIN_SECONDS = 0.5
"""The time after which a worker no longer begins a call that it has received beside other calls."""

# The processor time, and the time for a worker that uses none (as in `time.sleep`), without an answer to a ping.
_PROCESSOR_SECONDS = 0.25
_SECONDS = 2.0
_STACK_SECONDS = 1.0
_HEADER = "Stack (most recent call first):"
_FRAME = re.compile(r'  File "([ -~]{1,1000})", line ([0-9]{1,9}) in ([ -~]{1,1000})')
_MAX_TEXT = 120


class Stack:
    """The Python stack that a worker printed to standard error on request.

    A skill can print one too, so it is only used for messages and to choose which call of the worker fails first.

    Attributes:
        where: the file, line and function of the skill's innermost frame, or an empty string if unknown.
        call: the id of the running call, or ``None`` if unknown.
    """

    def __init__(self) -> None:
        self.where = ""
        self.call: str | None = None
        self._folders: tuple[str, ...] = ()
        self._state = ""
        self._read = anyio.Event()

    def expect(self, launch: LaunchRequest) -> None:
        """Prepare for the stack of a worker that was requested to print it."""
        folders = (launch.snapshot, launch.packages)
        self._folders = tuple(f"{folder}/" for folder in folders if folder is not None)
        self._state, self.where, self.call = "expected", "", None
        self._read = anyio.Event()

    async def wait(self) -> None:
        """Wait until the stack was read, for a short time."""
        with anyio.move_on_after(_STACK_SECONDS):
            await self._read.wait()

    def without(self, lines: Iterable[str]) -> list[str]:
        """Return lines of standard error without those of an expected stack."""
        return [line for line in lines if not self._state or not self._take(line)]

    def _take(self, line: str) -> bool:
        if line == _HEADER:
            self._state = "open"
            return True
        if self._state == "expected":
            return False
        frame = _FRAME.fullmatch(line)
        if frame is None:
            self._state = ""
            self._read.set()
            return line == "  ..."
        path, number, function = frame.groups()
        if path == CALL_FILE:
            self.call = function
            self._read.set()
        folder = next((folder for folder in self._folders if path.startswith(folder)), None)
        if folder is not None and not self.where:
            self.where = f"{path[len(folder) :][-_MAX_TEXT:]}, line {number}, in {function[:_MAX_TEXT]}"
        return True


@define(eq=False, repr=False)
class LoopWatch:
    """Watches the event loop of a worker while it has calls.

    Args:
        process: the worker.
        calls: the running calls of the worker.
        stack: the reader of the stack that the worker prints.
        ping: a function that sends a ping with that number.
        is_drained: a function that returns whether all messages of the worker have been handled.

    Attributes:
        is_blocked: whether the event loop is blocked.
    """

    _process: WorkerProcess
    _calls: PendingCalls
    _stack: Stack
    _ping: Callable[[int], None]
    _is_drained: Callable[[], bool]
    is_blocked: bool = field(default=False, init=False)
    _last: int = field(default=0, init=False)
    _answered: int = field(default=0, init=False)
    _processor: float = field(default=0.0, init=False)
    _asked_processor: float = field(default=0.0, init=False)
    _asked_at: float = field(default=0.0, init=False)

    def check(self, processor: float) -> None:
        """Check whether the last ping was answered, and move calls away from a blocked worker.

        Args:
            processor: the processor time that the worker has used, in seconds.
        """
        self._processor = processor
        if self._answered == self._last:
            if self._calls:
                self._ask()
            return
        computed, waited = processor - self._asked_processor, anyio.current_time() - self._asked_at
        overdue = self.is_blocked or computed >= _PROCESSOR_SECONDS or waited >= _SECONDS
        # Choose the calls first: what the worker has sent until then must be handled before they can be moved.
        moving = [call for call in self._calls if call.never_begins]
        # A worker is not blocked if the host has not read its answer.
        if not overdue or not self._is_drained():
            return
        if not self.is_blocked:
            self._block()
        for call in moving:
            call.end(error=NotBegun)
        if moving:
            # The worker reports these calls as late before it answers this ping. Then it can get them again.
            self._ask()

    def _ask(self) -> None:
        self._last += 1
        self._asked_processor, self._asked_at = self._processor, anyio.current_time()
        self._ping(self._last)

    def pong(self, number: int) -> None:
        """Handle the answer to a ping.

        Raises:
            ProtocolViolation: if there was no such ping, or it has been answered.
        """
        if not self._answered < number <= self._last:
            raise ProtocolViolation("it answered a ping that was not sent")
        self._answered = number
        self.is_blocked = self.is_blocked and number < self._last

    def ask(self) -> None:
        """Send a ping now, before waiting for something that a blocked worker does not do."""
        if self._answered == self._last:
            self._ask()

    async def find_blocking_call(self) -> None:
        """Determine which call blocks the worker, after ``ask`` and a time in which it should have answered."""
        if self._answered < self._last and self._is_drained():
            self._block()
            await self._stack.wait()

    def _block(self) -> None:
        self.is_blocked = True
        for call in self._calls:
            # All calls of a worker have the same launch request.
            self._stack.expect(call.spec.launch)
            self._process.show_stack()
            return

    @property
    def where(self) -> str:
        """The file, line and function that block the worker, or an empty string if unknown or not blocked."""
        return self._stack.where if self.is_blocked else ""

    def is_blocked_by(self, call: PendingCall) -> bool:
        """Return whether the event loop is blocked by this call."""
        return self.is_blocked and (self._stack.call == call.spec.id or len(self._calls) == 1)

    def is_blocked_by_other(self, call: PendingCall) -> bool:
        """Return whether the event loop is blocked by another running call."""
        return self.is_blocked and any(other.spec.id == self._stack.call for other in self._calls if other is not call)
