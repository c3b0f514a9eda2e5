"""One worker of a pool, from the first call that needs it to its end: who uses it, and whether it takes more."""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import itemgetter
from time import monotonic

import anyio

from ._permits import Permit
from ._worker import Worker

__all__ = ["Slot", "make_way"]

# A worker that may be busy for longer than this is not relied on to give way.
_SOON = 60.0


class Slot:
    """A worker that waits for its permit, is being started, or is there.

    Args:
        permit: its permit, asked for.
        alone: whether it is for one call only.

    Attributes:
        calls: the calls that are in it or wait for it, each with its deadline.
        settled: set once it has a worker that takes calls, or never will.
        error: why it never will.
        leaving: whether it takes no new calls, and ends when those in it have ended.
        scope: cancelled to end it.
        since: since when it has been in use or, if nobody uses it, idle; by ``time.monotonic``.
    """

    __slots__ = ("alone", "calls", "error", "leaving", "permit", "scope", "settled", "since", "worker")

    def __init__(self, permit: Permit, *, alone: bool) -> None:
        self.permit = permit
        self.alone = alone
        self.worker: Worker | None = None
        self.error: Exception | None = None
        self.settled = anyio.Event()
        self.scope = anyio.CancelScope()
        self.calls: dict[str, float] = {}
        self.leaving = False
        self.since = monotonic()

    @property
    def takes_calls(self) -> bool:
        """Whether a new call may enter it."""
        return not self.leaving and (not self.settled.is_set() or self.is_ready)

    @property
    def is_ready(self) -> bool:
        """Whether the calls that have entered it can be run."""
        return self.worker is not None and not self.worker.ended and not self.worker.stuck

    @property
    def is_idle(self) -> bool:
        """Whether its worker is there, and nobody uses it."""
        return self.settled.is_set() and not self.calls

    @property
    def has_ended(self) -> bool:
        """Whether its worker is gone, or about to be."""
        return self.worker is not None and self.worker.ended

    def enter(self, call: str, deadline: float) -> None:
        """Note that a call is in it, or waits for it."""
        if not self.calls:
            self.since = monotonic()
        self.calls[call] = deadline

    def exit(self, call: str) -> None:
        """Note that a call has ended, and end it if it is of no use any more."""
        del self.calls[call]
        if self.calls:
            return
        self.since = monotonic()
        stuck = self.worker is not None and self.worker.stuck
        if self.alone or self.leaving or stuck or not self.permit.granted.is_set():
            self.leave()

    def leave(self) -> None:
        """Take no new calls, and end when those in it have ended."""
        self.leaving = True
        if not self.calls:
            self.scope.cancel()

    def is_free_by(self, time: float) -> bool:
        """Whether all calls in it must have ended by then."""
        return self.has_ended or max(self.calls.values(), default=-math.inf) <= time


def make_way(slots: Iterable[Slot], number: int) -> None:
    """Let as many leave as are waited for: idle ones first, then those that have been in use for longest.

    One that may be busy for long is told only where there is no other, and doesn't count once there is: whoever waits
    could wait in vain. One that is for one call only leaves by itself, as late as it likes, and doesn't count at all.
    """
    soon = anyio.current_time() + _SOON
    told, others = [], []
    for slot in slots:
        if slot.leaving or slot.has_ended:
            told.append(slot.is_free_by(soon))
        elif not slot.alone:
            others.append((bool(slot.calls), not slot.is_free_by(soon), slot.since, slot))
    for _, is_late, _, slot in sorted(others, key=itemgetter(0, 1, 2)):
        if (len(told) if is_late else sum(told)) >= number:
            return
        told.append(not is_late)
        slot.leave()
