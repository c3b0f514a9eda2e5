"""The slots of a pool, and the permits that limit the number of workers.

Permits are shared fairly: trust domains take turns, and each gets at most half of them. A slot is one worker, from the
first call that needs it until its end.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING

import anyio
from attrs import define, field

if TYPE_CHECKING:
    from ._worker import Worker

# A leaving worker whose calls may run longer than this does not count as a worker that makes way.
_SOON = 60.0


@define(eq=False)
class Permit:
    """A permit that is requested or held.

    Args:
        domain: the trust domain of the permit.
        granted: set when the permit is held.
    """

    domain: str
    granted: anyio.Event = field(factory=anyio.Event, init=False)


class Permits:
    """A fixed number of permits.

    Waiting domains take turns in the order in which they began to wait. Within a domain, requests are granted in order.
    The caller of ``ask`` must call ``leave``, even if the permit was never granted.

    Args:
        maximum: the number of permits.

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
        """Whether any request is waiting."""
        return bool(self._waiting)

    def ask(self, domain: str) -> Permit:
        """Request a permit for that domain. It is granted immediately if possible, else in its turn."""
        permit = Permit(domain)
        self._waiting.setdefault(domain, deque()).append(permit)
        self._grant()
        return permit

    def leave(self, permit: Permit) -> None:
        """Release a permit, or withdraw its request. Idempotent."""
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
        """Yield pairs of a domain and the number of permits that it must release; ``None`` means any domain."""
        of_any_domain = 0
        for domain, queue in self._waiting.items():
            left = self._share - self._of_domain[domain]
            of_any_domain += min(len(queue), left)
            if not left:
                yield domain, min(len(queue), self._share)
        if of_any_domain:
            yield None, of_any_domain

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
    """A worker that is waiting for its permit, starting, or running.

    Args:
        permit: the requested permit.
        alone: whether it is for one call only.

    Attributes:
        calls: the calls that run in it or wait for it, each with its deadline.
        settled: set when its worker accepts calls, or has failed to start.
        error: the reason why it failed to start.
        leaving: whether it gets no new calls and ends when its calls have ended.
        scope: the cancel scope of the slot.
        since: the time since which it has been in use, or idle if it has no calls, by ``time.monotonic``.
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
        """Whether it accepts a new call."""
        return not self.leaving and (self.ready_worker is not None or not self.settled.is_set())

    @property
    def ready_worker(self) -> Worker | None:
        """The worker if it can run calls, else ``None``."""
        return self.worker if self.worker is not None and self.worker.takes_calls else None

    @property
    def is_idle(self) -> bool:
        """Whether its worker is running and has no calls."""
        return self.settled.is_set() and not self.calls

    @property
    def has_ended(self) -> bool:
        """Whether its worker has ended or is about to end."""
        return self.worker is not None and self.worker.ended

    def enter(self, call: str, deadline: float) -> None:
        """Add a call, which may have to wait for the worker."""
        if not self.calls:
            self.since = monotonic()
        self.calls[call] = deadline

    def exit(self, call: str) -> None:
        """Remove a call that has ended, and end the slot if it is no longer useful."""
        del self.calls[call]
        if self.calls:
            return
        self.since = monotonic()
        stuck = self.worker is not None and self.worker.stuck
        if self.alone or self.leaving or stuck or (self.worker is None and not self.permit.granted.is_set()):
            self.leave()

    def leave(self) -> None:
        """Accept no new calls, and end when its calls have ended."""
        self.leaving = True
        if not self.calls:
            self.scope.cancel()

    def is_free_by(self, time: float) -> bool:
        """Return whether all its calls must have ended by that time."""
        return self.has_ended or max(self.calls.values(), default=-math.inf) <= time


def make_way(slots: Iterable[Slot], number: int) -> None:
    """Make at least ``number`` slots leave: idle ones first, then those that have been in use for longest.

    A slot whose calls may run for long leaves only if there is no other, and does not count if another one can leave,
    because waiting for it could take too long. A slot for one call only leaves by itself and never counts.
    """
    soon = anyio.current_time() + _SOON
    leaving, others = [], []
    for slot in slots:
        if slot.leaving or slot.has_ended:
            leaving.append(slot.is_free_by(soon))
        elif not slot.alone:
            others.append((bool(slot.calls), not slot.is_free_by(soon), slot.since, slot))
    for _, is_late, _, slot in sorted(others, key=itemgetter(0, 1, 2)):
        if (len(leaving) if is_late else sum(leaving)) >= number:
            return
        leaving.append(not is_late)
        slot.leave()
