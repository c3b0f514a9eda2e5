"""Compute the wait before a retry."""

from __future__ import annotations

from collections.abc import Callable
from random import SystemRandom

_MAX_DOUBLINGS = 32
_RANDOM = SystemRandom()


class Schedule:
    """Exponential backoff with full jitter, so that clients that failed together do not retry together.

    Args:
        base: the maximum wait before the first retry, in seconds.
        cap: the maximum wait unless a provider names one, in seconds.
        random: returns a number from 0 up to 1.

    Example:
        >>> schedule = Schedule(base=2, cap=60, random=lambda: 0.5)
        >>> [schedule.delay(number) for number in (1, 2, 3, 4, 5, 6)]
        [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
        >>> schedule.delay(1, floor=20)
        21.0
    """

    def __init__(self, *, base: float, cap: float, random: Callable[[], float] = _RANDOM.random) -> None:
        self._base = base
        self._cap = cap
        self._random = random

    def delay(self, number: int, *, floor: float = 0.0, factor: float = 1.0) -> float:
        """Return the seconds before a retry.

        Args:
            number: the number of the retry, from 1.
            floor: the wait that a provider names, in seconds. The jitter is added to it.
            factor: scales the base.
        """
        longest = min(self._cap, self._base * factor * 2.0 ** min(number - 1, _MAX_DOUBLINGS))
        return floor + self._random() * longest
