"""The time for which code may use a context."""

from __future__ import annotations

from time import perf_counter
from typing import Protocol

from attrs import define, field


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
