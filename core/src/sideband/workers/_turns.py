"""Schedule the ops of a worker fairly, so that a worker with many ops in flight does not delay the others."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Generator
from time import perf_counter
from types import coroutine
from typing import Any, TypeVar

import anyio

from ._host_time import TimeShare

# The time in seconds that a worker's steps may take in a row, and the number of iterations of the event loop before its
# next step. Iterations are fast if other workers are idle, and slow if they are busy.
_SECONDS = 0.0001
_ROUNDS = 8
_LONG_SECONDS = 0.002

T = TypeVar("T")


class Turns:
    """A scheduler for the steps of one worker's ops while other workers are busy.

    Without it, a worker with 32 ops in flight would run 32 steps for each step of another worker.

    It works on asyncio only. On trio, tasks are scheduled as usual.

    Args:
        share: the worker's share of the host's time.
    """

    def __init__(self, share: TimeShare) -> None:
        self._share = share
        self._spent = 0.0
        self._rounds = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._on_asyncio = anyio.get_cancelled_exc_class() is asyncio.CancelledError

    async def run(self, steps: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine step by step."""
        if not self._on_asyncio:
            return await steps
        return await _stepped(steps.__await__(), self)

    def turn(self) -> asyncio.Future[None] | None:
        """Return a future that the next step must wait for, or ``None`` if it may run now."""
        if self._spent < _SECONDS and not self._waiting:
            return None
        if not self._share.has_busy_neighbors:
            return None
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        return turn

    def spend(self, seconds: float) -> None:
        """Count the time of a step. Charge a long step to the worker's share."""
        if seconds > _LONG_SECONDS:
            self._share.charge(seconds)
        if not self._waiting and not self._share.has_busy_neighbors:
            return
        self._spent += seconds
        if not self._rounds:
            self._rounds = _ROUNDS
            asyncio.get_running_loop().call_soon(self._count_iteration)

    def _count_iteration(self) -> None:
        """Count one iteration of the event loop, and admit a step after enough iterations."""
        self._rounds -= 1
        if not self._rounds or not self._share.has_busy_neighbors:
            self._spent = 0.0
            self._rounds = _ROUNDS if self._waiting else 0
            self._admit()
        if self._rounds:
            asyncio.get_running_loop().call_soon(self._count_iteration)

    def _admit(self) -> None:
        """Let one waiting step run, or all of them if no other worker is busy."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                if self._share.has_busy_neighbors:
                    return


@coroutine
def _stepped(steps: Generator[Any, Any, T], turns: Turns) -> Generator[Any, Any, T]:
    """Wait for a turn before each step of a coroutine."""
    value: Any = None
    error: BaseException | None = None
    try:
        while True:
            turn = turns.turn()
            if turn is not None:
                try:
                    yield from turn
                except BaseException as thrown:  # noqa: BLE001  passed to the coroutine, cancellation in particular
                    error = thrown
            began = perf_counter()
            try:
                awaited = steps.send(value) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            finally:
                turns.spend(perf_counter() - began)
            value = error = None
            try:
                value = yield awaited
            except BaseException as thrown:  # noqa: BLE001  see above
                error = thrown
    finally:
        steps.close()
