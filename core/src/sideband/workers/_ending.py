"""Wait for the end of a call, at most until its deadline.

On asyncio, a future and a timer take a third of the time of a cancel scope with a deadline.
"""

from __future__ import annotations

import asyncio

import anyio


class Ending:
    """Something that ends once, and that one task at a time waits for.

    Args:
        on_asyncio: whether the event loop is that of asyncio.

    Attributes:
        has_come: whether it has ended.
    """

    __slots__ = ("_event", "_on_asyncio", "_waiter", "has_come")

    def __init__(self, *, on_asyncio: bool) -> None:
        self.has_come = False
        self._on_asyncio = on_asyncio
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
        if not self._on_asyncio:
            self._event = anyio.Event()
            with anyio.CancelScope(deadline=deadline):
                await self._event.wait()
            return
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = loop.call_at(deadline, _wake, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
