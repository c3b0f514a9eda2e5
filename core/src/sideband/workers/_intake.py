"""Read the messages of a worker: split lines, validate and handle them, and apply backpressure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter

from attrs import define, field

from . import _wire
from ._channel import Later
from ._dispatching import Dispatching
from ._errors import ProtocolViolation, WorkerError
from ._host_time import TimeShare
from ._outputs import WorkerOutputs
from ._pending import PendingCalls
from .runtime import BadFrame, LineBuffer

_LARGE_LINE = 65_536


@define(eq=False, repr=False)
class Intake:
    """The handler of the bytes that arrive from one worker.

    Args:
        calls: the running calls of the worker.
        dispatching: the dispatches of the worker.
        outputs: the receiver of ``log`` messages.
        share: the worker's share of the host's time.
        answer: a function that sends the answer to a refused dispatch.
        pong: called with the number of each ``pong``.
        line_timeout: the maximum time from the first to the last byte of a line in seconds, not counting pauses in
            reading.

    Attributes:
        is_paused: whether received messages wait to be handled.
    """

    _calls: PendingCalls
    _dispatching: Dispatching
    _outputs: WorkerOutputs
    _share: TimeShare = field(kw_only=True)
    _answer: Callable[[bytes], Awaitable[None]] = field(kw_only=True)
    _pong: Callable[[int], None] = field(kw_only=True)
    _line_timeout: float = field(kw_only=True)
    is_paused: bool = field(default=False, init=False)
    _lines: LineBuffer = field(factory=LineBuffer, init=False)
    _line_began: float | None = field(default=None, init=False)

    def cut(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now.

        Raises:
            ProtocolViolation: if a line is too long.
        """
        try:
            found = self._lines.feed(data)
        except BadFrame as problem:
            raise ProtocolViolation(str(problem)) from None
        if not self._lines.is_open:
            self._line_began = None
        elif found or self._line_began is None:
            self._line_began = perf_counter()
        return found

    def overdue(self) -> Callable[[], WorkerError] | None:
        """Return a factory for the error if the worker did not finish a line in time, else ``None``."""
        if self._line_began is None or perf_counter() - self._line_began <= self._line_timeout:
            return None
        return partial(ProtocolViolation, f"it did not finish a line within {self._line_timeout:g} s")

    def take(self, data: bytes) -> Later | None:
        """Handle received bytes, synchronously if possible. See ``WorkerChannel.pump``.

        Raises:
            ProtocolViolation: if a message is invalid.
        """
        self._share.begin()
        found = self.cut(data)
        for index, line in enumerate(found):
            if len(line) > _LARGE_LINE:
                return self._pause(found[index:])
            refusal = self._take(_wire.parse(line), len(line))
            if self._share.lap() or refusal is not None or self._dispatching.is_full:
                return self._pause(found[index + 1 :], refusal)
        # Handled messages have been charged above. Charge the splitting of an incomplete line here.
        return self._pause([]) if not found and self._share.lap() else None

    def _pause(self, lines: list[bytes], refusal: bytes | None = None) -> Later:
        self.is_paused = True
        return partial(self._take_with_waits, lines, refusal)

    async def _take_with_waits(self, lines: list[bytes], refusal: bytes | None) -> bool:
        """Handle lines with waits: for room, for the time budget, for a thread, or for the worker to read an answer."""
        # The worker cannot finish a line while the host does not read.
        line_began, self._line_began = self._line_began, None
        paused = perf_counter()
        await self._settle(refusal)
        for line in lines:
            message = await self._share.run_in_thread(_wire.parse, line) if len(line) > _LARGE_LINE else None
            self._share.begin()
            refusal = self._take(message or _wire.parse(line), len(line))
            self._share.lap()
            await self._settle(refusal)
        if line_began is not None:
            self._line_began = line_began + perf_counter() - paused
        self.is_paused = False
        return True

    async def _settle(self, refusal: bytes | None) -> None:
        if refusal is not None:
            # Wait for the write, so that the host stops reading from a worker that does not read its answers.
            await self._answer(refusal)
        if self._dispatching.is_full:
            await self._dispatching.wait_for_room()
        if self._share.is_spent:
            await self._share.rest()

    def _take(self, message: _wire.Message, size: int) -> bytes | None:
        """Handle a message of ``size`` bytes, and return the answer if it is a dispatch that is refused."""
        match message:
            case _wire.DispatchMessage():
                return self._dispatching.take(self._calls.find(message.call), message, size)
            case _wire.ResultMessage():
                self._calls.settle(message, size)
            case _wire.CancelMessage():
                self._dispatching.cancel(message)
            case _wire.LogMessage():
                call = None if message.call is None else self._calls.find(message.call)
                self._outputs.take_log(call, message.stream, message.text)
            case _wire.ProgressMessage():
                call = self._calls.find(message.call)
                if call is not None:
                    self._dispatching.take_progress(call, message, size)
            case _wire.BegunMessage():
                self._calls.mark(message)
            case _wire.PongMessage():
                self._pong(message.number)
            case _wire.ReadyMessage():
                raise ProtocolViolation("it sent `ready` twice")
        return None
