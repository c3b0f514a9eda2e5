"""How long calls have waited for a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from attrs import define, field

from ..ops import Origin

_MAX_CALLS = 10_000


@define
class _Wait:
    """The waits of one call, several of which may be at the same time: how many, since when, and those before."""

    open: int = 0
    since: float = 0.0
    seconds: float = 0.0


@define(eq=False)
class Waits:
    """How long the calls of agents have waited for a person, so that it does not count as time of a tool.

    Example:
        >>> waits, origin = Waits(), Origin(run="1", step="0.0")
        >>> with waits.of(origin):
        ...     pass
        >>> waits.taken(origin) > 0, waits.taken(origin)
        (True, 0.0)
    """

    _calls: dict[tuple[str, str | None], _Wait] = field(factory=dict, init=False, repr=False)

    @contextmanager
    def of(self, origin: Origin) -> Iterator[None]:
        """Count the time of a block, in which the call of an origin waits for a person."""
        if origin.run is None:
            yield
            return
        if len(self._calls) >= _MAX_CALLS:  # those of calls that no agent has made
            self._calls.clear()
        wait = self._calls.setdefault((origin.run, origin.step), _Wait())
        wait.open += 1
        wait.since = wait.since if wait.open > 1 else perf_counter()
        try:
            yield
        finally:
            wait.open -= 1
            wait.seconds += 0.0 if wait.open else perf_counter() - wait.since

    def taken(self, origin: Origin) -> float:
        """Return the seconds that a call that has ended has waited, and forget them."""
        wait = self._calls.pop((origin.run or "", origin.step), None)
        return 0.0 if wait is None else wait.seconds
