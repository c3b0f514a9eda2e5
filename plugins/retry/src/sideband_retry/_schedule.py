"""How long to wait before a call is made again."""

from __future__ import annotations

from collections.abc import Callable
from random import SystemRandom

_MOST_DOUBLINGS = 32
_RANDOM = SystemRandom()


class Schedule:
    """Exponential backoff with full jitter: many clients that failed at once don't come back at once.

    Args:
        base: seconds: the longest wait before the first repetition.
        cap: seconds: the longest wait of all that no provider asked for.
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
        """The seconds before a repetition.

        Args:
            number: which repetition, from 1.
            floor: what a provider asks for, in seconds. It is never undercut: the jitter comes on top of it.
            factor: scales the base.
        """
        longest = min(self._cap, self._base * factor * 2.0 ** min(number - 1, _MOST_DOUBLINGS))
        return floor + self._random() * longest
