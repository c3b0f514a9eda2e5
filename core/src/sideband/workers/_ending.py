"""Wait for the ends of calls, each at most until its deadline.

On asyncio, a future and a shared timer take much less time than a cancel scope with a deadline.
"""

from __future__ import annotations

import asyncio
import math

import anyio


class Deadlines:
    """The deadlines of the calls of a worker. They share one timer, since nearly all calls end before theirs.

    Example:
        >>> ending = Ending(Deadlines())
        >>> await ending.wait(anyio.current_time() + 60)
    """

    def __init__(self) -> None:
        on_asyncio = anyio.get_cancelled_exc_class() is asyncio.CancelledError
        self.loop = asyncio.get_running_loop() if on_asyncio else None
        self._waiting: dict[asyncio.Future[None], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = math.inf

    def add(self, waiter: asyncio.Future[None], deadline: float) -> None:
        """Wake ``waiter`` at its deadline."""
        self._waiting[waiter] = deadline
        if deadline < self._next:
            self._set(deadline)

    def remove(self, waiter: asyncio.Future[None]) -> None:
        """Forget a waiter. The timer stays as it is: setting it for each call would take longer than an early alarm."""
        del self._waiting[waiter]

    def _set(self, time: float) -> None:
        assert self.loop is not None  # noqa: S101  there are waiters only on asyncio
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._next = self.loop.call_at(time, self._alarm, time), time

    def _alarm(self, time: float) -> None:
        """Wake the waiters that are due. The timer may be early by the resolution of the clock, hence ``time``."""
        self._timer, self._next = None, math.inf
        for waiter, deadline in self._waiting.items():
            if deadline <= time:
                _wake(waiter)
        later = [deadline for deadline in self._waiting.values() if deadline > time]
        if later:
            self._set(min(later))


class Ending:
    """Something that ends once, and that one task at a time waits for.

    Args:
        deadlines: the deadlines of the worker.

    Attributes:
        has_come: whether it has ended.
    """

    __slots__ = ("_deadlines", "_event", "_waiter", "has_come")

    def __init__(self, deadlines: Deadlines) -> None:
        self.has_come = False
        self._deadlines = deadlines
        self._event: anyio.Event | None = None
        self._waiter: asyncio.Future[None] | None = None

    def come(self) -> None:
        """Wake the waiting task. Idempotent."""
        self.has_come = True
        if self._waiter is not None:
            _wake(self._waiter)
        elif self._event is not None:
            self._event.set()

    async def wait(self, deadline: float) -> None:
        """Wait until it has come, or until ``deadline`` on the clock of ``anyio.current_time()``."""
        if self.has_come:
            return
        deadlines = self._deadlines
        if deadlines.loop is None:
            self._event = anyio.Event()
            with anyio.CancelScope(deadline=deadline):
                await self._event.wait()
            return
        waiter = self._waiter = deadlines.loop.create_future()
        deadlines.add(waiter, deadline)
        try:
            await waiter
        finally:
            deadlines.remove(waiter)
            self._waiter = None


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
