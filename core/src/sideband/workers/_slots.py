"""The workers of a pool: who may have one, who uses it, and whether it takes more.

Permits are shared fairly: trust domains take turns, and none has more than half of them. A slot is one worker, from the
first call that needs it to its end.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from operator import itemgetter
from time import monotonic

import anyio
from attrs import define, field

from ._worker import Worker

# A worker that may be busy for longer than this is not relied on to give way.
_SOON = 60.0


@define(eq=False)
class Permit:
    """One permit, waited for or held.

    Args:
        domain: the trust domain that it is for.
        granted: set once it is held.
    """

    domain: str
    granted: anyio.Event = field(factory=anyio.Event, init=False)


class Permits:
    """At most so many permits at once.

    The domains that wait take turns, in the order in which they began to wait; within a domain it is first come, first
    served. Whoever asked must ``leave``, also if it was never granted.

    Args:
        maximum: how many there are.

    Example:
        >>> permits = Permits(maximum=1)
        >>> first, second = permits.ask("a"), permits.ask("b")
        >>> permits.leave(first)
        >>> second.granted.is_set()
        True
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._share = max(1, maximum // 2)
        self._held: set[Permit] = set()
        self._of_domain: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[Permit]] = OrderedDict()

    @property
    def is_waited_for(self) -> bool:
        """Whether anybody has asked and got none yet."""
        return bool(self._waiting)

    def ask(self, domain: str) -> Permit:
        """A permit for that domain: granted at once if it can be, else when it is its turn."""
        permit = Permit(domain)
        self._waiting.setdefault(domain, deque()).append(permit)
        self._grant()
        return permit

    def leave(self, permit: Permit) -> None:
        """Give a permit back, or wait for it no longer. Harmless if that was said before."""
        if permit in self._held:
            self._held.remove(permit)
            self._of_domain[permit.domain] -= 1
            if not self._of_domain[permit.domain]:
                del self._of_domain[permit.domain]
        elif permit in self._waiting.get(permit.domain, ()):
            self._waiting[permit.domain].remove(permit)
            if not self._waiting[permit.domain]:
                del self._waiting[permit.domain]
        self._grant()

    def lacking(self) -> Iterator[tuple[str | None, int]]:
        """How many permits somebody lacks now, and whose: those of one domain, or, for ``None``, anybody's."""
        anybodys = 0
        for domain, queue in self._waiting.items():
            left = self._share - self._of_domain[domain]
            anybodys += min(len(queue), left)
            if not left:
                yield domain, min(len(queue), self._share)
        if anybodys:
            yield None, anybodys

    def _grant(self) -> None:
        while len(self._held) < self._maximum:
            turn = next((domain for domain in self._waiting if self._of_domain[domain] < self._share), None)
            if turn is None:
                return
            queue = self._waiting.pop(turn)
            permit = queue.popleft()
            if queue:
                self._waiting[turn] = queue
            self._held.add(permit)
            self._of_domain[turn] += 1
            permit.granted.set()


@define(eq=False)
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

    permit: Permit
    alone: bool = field(kw_only=True)
    worker: Worker | None = field(default=None, init=False)
    error: Exception | None = field(default=None, init=False)
    settled: anyio.Event = field(factory=anyio.Event, init=False)
    scope: anyio.CancelScope = field(factory=anyio.CancelScope, init=False)
    calls: dict[str, float] = field(factory=dict, init=False)
    leaving: bool = field(default=False, init=False)
    since: float = field(factory=monotonic, init=False)

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
