"""What a worker says: cut into lines, checked, acted on, and never more of it than the host has room and time for."""

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
    """Takes what arrives from one worker.

    Args:
        calls: those that are in the worker.
        dispatching: runs the ops that they ask for.
        outputs: gets what they print.
        share: of the host's time.
        answer: sends the answer to what is refused.
        line_timeout: seconds that a line may take from its first byte to its end, while the worker is read.
    """

    _calls: PendingCalls
    _dispatching: Dispatching
    _outputs: WorkerOutputs
    _share: TimeShare = field(kw_only=True)
    _answer: Callable[[bytes], Awaitable[None]] = field(kw_only=True)
    _line_timeout: float = field(kw_only=True)
    _lines: LineBuffer = field(factory=LineBuffer, init=False)
    _line_began: float | None = field(default=None, init=False)

    def cut(self, data: bytes) -> list[bytes]:
        """The lines that are whole now.

        Raises:
            ProtocolViolation: one is too long.
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
        """What makes the error of a worker that does not end a line; ``None`` if it has not begun one lately."""
        if self._line_began is None or perf_counter() - self._line_began <= self._line_timeout:
            return None
        return partial(ProtocolViolation, f"it did not end a line within {self._line_timeout:g} s")

    def take(self, data: bytes) -> Later | None:
        """Act on some bytes, at once where that can be; see ``WorkerChannel.pump``.

        Raises:
            ProtocolViolation: it said what it may not say.
        """
        self._share.begin()
        found = self.cut(data)
        for index, line in enumerate(found):
            if len(line) > _LARGE_LINE:
                return partial(self._take_slowly, found[index:])
            refusal = self._take(_wire.parse(line), len(line))
            if self._share.lap() or refusal is not None or self._dispatching.is_full:
                return partial(self._take_slowly, found[index + 1 :], refusal)
        # What was taken has been counted; cutting off a piece of a line has not.
        return partial(self._take_slowly, []) if not found and self._share.lap() else None

    async def _take_slowly(self, lines: list[bytes], refusal: bytes | None = None) -> bool:
        """Take lines when something has to be waited for: room, time, a thread, or that the worker reads."""
        # It can't end a line while it is not read.
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
        return True

    async def _settle(self, refusal: bytes | None) -> None:
        if refusal is not None:
            # Waited for, so that a worker that asks in vain without reading is not read any more.
            await self._answer(refusal)
        if self._dispatching.is_full:
            await self._dispatching.wait_for_room()
        if self._share.is_spent:
            await self._share.rest()

    def _take(self, message: _wire.Message, size: int) -> bytes | None:
        """Act on a message that came in a line of ``size`` bytes. Returns the answer to a dispatch that is refused."""
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
            case _wire.ReadyMessage():
                raise ProtocolViolation("it says `ready` a second time")
        return None
