"""Takes turns on the event loop: of a worker that has many ops in flight, not all go on at once while others wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Generator
from time import perf_counter
from types import coroutine
from typing import Any, TypeVar

import anyio

from ._host_time import TimeShare

# How long a worker's steps may take together, and how often the loop then goes round before its next one. It goes round
# fast where others have nothing to do, and slowly where they have.
_SECONDS = 0.0001
_ROUNDS = 8
_LONG_SECONDS = 0.002

T = TypeVar("T")


class Turns:
    """What one worker has asked for goes on little by little while other workers are busy.

    Without it, whoever has 32 ops in flight would have 32 steps taken for each one of a neighbour's. Where neighbours
    have nothing to do after all, the loop goes round at once.

    Only on asyncio: elsewhere tasks go on as they come.

    Args:
        share: knows whether others are busy.
    """

    def __init__(self, share: TimeShare) -> None:
        self._share = share
        self._spent = 0.0
        self._rounds = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._on_asyncio = anyio.get_cancelled_exc_class() is asyncio.CancelledError

    async def run(self, steps: Coroutine[Any, Any, T]) -> T:
        """Run it, step by step."""
        if not self._on_asyncio:
            return await steps
        return await _stepped(steps.__await__(), self)

    def turn(self) -> asyncio.Future[None] | None:
        """What the next step has to wait for; ``None`` if it may be taken now."""
        if self._spent < _SECONDS and not self._waiting:
            return None
        if not self._share.has_busy_neighbours:
            return None
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        return turn

    def spend(self, seconds: float) -> None:
        """Count the time of a step; one that held up everybody is paid for with what the worker says next."""
        if seconds > _LONG_SECONDS:
            self._share.charge(seconds)
        if not self._waiting and not self._share.has_busy_neighbours:
            return
        self._spent += seconds
        if not self._rounds:
            self._rounds = _ROUNDS
            asyncio.get_running_loop().call_soon(self._go_round)

    def _go_round(self) -> None:
        """The loop has gone round once since the last step."""
        self._rounds -= 1
        if not self._rounds or not self._share.has_busy_neighbours:
            self._spent = 0.0
            self._rounds = _ROUNDS if self._waiting else 0
            self._admit()
        if self._rounds:
            asyncio.get_running_loop().call_soon(self._go_round)

    def _admit(self) -> None:
        """Let one step be taken that waits; if nobody is in its way any more, all of them."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                if self._share.has_busy_neighbours:
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
                except BaseException as thrown:  # noqa: BLE001  the coroutine's to handle, cancellation above all
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
            except BaseException as thrown:  # noqa: BLE001  the same
                error = thrown
    finally:
        steps.close()
