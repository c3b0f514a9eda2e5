"""Permits for workers, shared fairly: trust domains take turns, and none has more than half of them."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator

import anyio
from attrs import define, field

__all__ = ["Permit", "Permits"]


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
