"""Share the host's event loop time fairly, so that a worker that sends many messages does not starve the others."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar, TypeVarTuple

import anyio
from anyio.lowlevel import checkpoint

_SLICE = 0.002
_PART = 0.25
_RECENT = 0.1
_MAX_REST = 0.02

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class HostTime:
    """The event loop time that is spent on messages of workers. Each pool has one."""

    def __init__(self) -> None:
        self.shares: set[TimeShare] = set()
        self.resting = 0

    def share(self) -> TimeShare:
        """Return a share for a new worker. The caller must close it."""
        share = TimeShare(self)
        self.shares.add(share)
        return share


class TimeShare:
    """The time budget of one worker: bursts of 2 ms, and a quarter of all time on average.

    Ordinary traffic stays below that. A worker that has spent its budget rests: the host reads nothing from it until
    the budget is 2 ms again. All resting workers share that quarter. While no other worker is active, a worker rests
    for only one iteration of the event loop.

    Attributes:
        last_active: the time of the last message from or to the worker.

    Example:
        >>> share.begin()
        >>> for message in messages:
        ...     act_on(message)
        ...     if share.lap():
        ...         await share.rest()
        ...         share.begin()
    """

    __slots__ = ("_credit", "_earned_at", "_lap_began", "_thread", "_time", "last_active")

    def __init__(self, time: HostTime) -> None:
        self._time = time
        self._credit = _SLICE
        self._earned_at = self._lap_began = self.last_active = perf_counter()
        # One thread at a time, because computing threads compete with the event loop for the GIL.
        self._thread = anyio.CapacityLimiter(1)

    def close(self) -> None:
        """Release the share. Idempotent."""
        self._time.shares.discard(self)

    def touch(self) -> None:
        """Mark the worker as active, because a message is sent to it."""
        self.last_active = perf_counter()

    def begin(self) -> None:
        """Start to measure the time spent on messages of the worker."""
        self._lap_began = self.last_active = perf_counter()

    def lap(self) -> bool:
        """Charge the time since ``begin`` or the last lap, and return whether the worker must ``rest`` now."""
        now = perf_counter()
        # As in `charge`, which would read the clock again.
        self._credit = min(self._credit + (now - self._earned_at) * _PART, _SLICE) - (now - self._lap_began)
        self._earned_at = self._lap_began = now
        return self._credit < 0

    def charge(self, seconds: float) -> None:
        """Charge time that was spent on messages or dispatches of the worker."""
        self._earn(_PART)
        self._credit -= seconds

    @property
    def is_spent(self) -> bool:
        """Whether the worker must ``rest`` before more messages are read."""
        return self._credit < 0

    async def run_in_thread(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        """Run a slow function in a thread and charge its time, because it holds the GIL there too."""
        seconds = 0.0

        def timed() -> T:
            nonlocal seconds
            began = perf_counter()
            try:
                return function(*arguments)
            finally:
                seconds = perf_counter() - began

        try:
            return await anyio.to_thread.run_sync(timed, limiter=self._thread)
        finally:
            self.charge(seconds)

    async def rest(self) -> None:
        """Wait until the budget is positive again."""
        time = self._time
        time.resting += 1
        try:
            while self._credit < _SLICE:
                if not self.has_busy_neighbors:
                    await checkpoint()
                    self._credit = _SLICE
                    return
                part = _PART / time.resting
                await anyio.sleep(min((_SLICE - self._credit) / part, _MAX_REST))
                self._earn(_PART / time.resting)
        finally:
            time.resting -= 1

    @property
    def has_busy_neighbors(self) -> bool:
        """Whether another worker has been active recently."""
        if len(self._time.shares) < 2:
            return False
        recently = perf_counter() - _RECENT
        return any(share.last_active > recently for share in self._time.shares if share is not self)

    def _earn(self, part: float) -> None:
        now = perf_counter()
        self._credit = min(self._credit + (now - self._earned_at) * part, _SLICE)
        self._earned_at = now
