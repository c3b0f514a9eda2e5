"""The time for which code may use a context, and what ends with a session."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Protocol

import anyio
from attrs import define, field

_log = logging.getLogger("sideband.contexts")


class Lease(Protocol):
    """The time for which code may cause effects with a context. Its tasks and threads may still run afterward."""

    def is_over(self) -> bool:
        """Return whether further effects must be refused."""


@define(eq=False)
class TimedLease:
    """The lease of a function that runs until a deadline, by a clock that threads can read too.

    Attributes:
        deadline: the deadline of the function, by ``time.perf_counter``.
        outer: what the function must not outlast, such as the run of an agent.
    """

    deadline: float
    outer: Lease | None = None
    _ended: bool | None = field(default=None, init=False)

    def is_over(self) -> bool:
        """See ``Lease``."""
        if self._ended is not None:
            return self._ended
        return perf_counter() >= self.deadline or (self.outer is not None and self.outer.is_over())

    def end(self) -> None:
        """End the lease together with the function."""
        self._ended = True

    def settle(self) -> None:
        """Let the lease last if the function has ended in time, since tasks of its plugin may go on."""
        if self._ended is None:
            self._ended = self.is_over()


@define(eq=False)
class SessionEnds:
    """The functions to run at the ends of an agent's sessions.

    Example:
        >>> import anyio
        >>> ends = SessionEnds()
        >>> async def close():
        ...     print("closed")
        >>> ends.add("s1", close)
        >>> anyio.run(ends.end, "s2")
        >>> anyio.run(ends.end, "s1")
        closed
    """

    _closers: dict[str, list[Callable[[], Awaitable[None]]]] = field(factory=dict, init=False)

    def add(self, session: str, close: Callable[[], Awaitable[None]]) -> None:
        """Run ``close`` when this session has ended."""
        self._closers.setdefault(session, []).append(close)

    async def end(self, session: str) -> None:
        """Run all functions of a session in reverse order, even if some of them fail."""
        closers = self._closers.pop(session, [])
        with anyio.CancelScope(shield=True):
            while closers:
                try:
                    await closers.pop()()
                except Exception as error:  # noqa: BLE001  a failure in one plugin must not prevent the others from closing
                    _log.warning("failed to close what belongs to a session: %s", type(error).__name__)
