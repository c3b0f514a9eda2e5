"""The host's time: a worker that keeps it busy gets a part of it, and its neighbours notice little."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar, TypeVarTuple

import anyio
from anyio.lowlevel import checkpoint

_SLICE = 0.002
_PART = 0.25
_RECENT = 0.1
_LONGEST_REST = 0.02

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class HostTime:
    """The time of one event loop, as far as it goes into what workers say. One a pool."""

    def __init__(self) -> None:
        self.shares: set[TimeShare] = set()
        self.resting = 0

    def share(self) -> TimeShare:
        """The share of one more worker, for whoever starts it to close."""
        share = TimeShare(self)
        self.shares.add(share)
        return share


class TimeShare:
    """What one worker may use: 2 ms at once, and a quarter of all time in the long run.

    Ordinary traffic stays below that. A worker that has used up its share rests, which means that nothing is taken from
    it, until it has earned its 2 ms again; all that rest at the same time earn that quarter together. While no other
    worker says or is asked anything, nobody is in its way, and it only lets the loop go round once.

    Attributes:
        last_active: when the worker last said or was asked something.

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
        # One at a time: threads that compute keep the loop from running, however many there are.
        self._thread = anyio.CapacityLimiter(1)

    def close(self) -> None:
        """Give it back. Can be called again."""
        self._time.shares.discard(self)

    def touch(self) -> None:
        """Note that the worker is asked something."""
        self.last_active = perf_counter()

    def begin(self) -> None:
        """Begin to work on what the worker has said."""
        self._lap_began = self.last_active = perf_counter()

    def lap(self) -> bool:
        """Count the time since ``begin``, or since the last lap. Whether the worker has to ``rest`` now."""
        began, self._lap_began = self._lap_began, perf_counter()
        self.charge(self._lap_began - began)
        return self._credit < 0

    def charge(self, seconds: float) -> None:
        """Count time that went into what the worker says or has asked for."""
        self._earn(_PART)
        self._credit -= seconds

    @property
    def is_spent(self) -> bool:
        """Whether the worker has to ``rest`` before more is taken from it."""
        return self._credit < 0

    async def run_in_thread(self, function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
        """Run what takes long, and count its time: even in a thread it keeps the loop from running."""
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
        """Wait until there is something to spend again."""
        time = self._time
        time.resting += 1
        try:
            while self._credit < _SLICE:
                if not self.has_busy_neighbours:
                    await checkpoint()
                    self._credit = _SLICE
                    return
                part = _PART / time.resting
                await anyio.sleep(min((_SLICE - self._credit) / part, _LONGEST_REST))
                self._earn(_PART / time.resting)
        finally:
            time.resting -= 1

    @property
    def has_busy_neighbours(self) -> bool:
        """Whether another worker said or was asked something just now."""
        if len(self._time.shares) < 2:
            return False
        recently = perf_counter() - _RECENT
        return any(share.last_active > recently for share in self._time.shares if share is not self)

    def _earn(self, part: float) -> None:
        now = perf_counter()
        self._credit = min(self._credit + (now - self._earned_at) * part, _SLICE)
        self._earned_at = now
