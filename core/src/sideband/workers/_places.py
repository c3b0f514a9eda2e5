"""Places for workers, shared fairly: trust domains take turns, and none has more than half of them."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator

import anyio
from attrs import define, field

__all__ = ["Place", "Places"]


@define(eq=False)
class Place:
    """One place, waited for or held.

    Args:
        domain: the trust domain that it is for.
        granted: set once it is held.
    """

    domain: str
    granted: anyio.Event = field(factory=anyio.Event, init=False)


class Places:
    """At most so many places at once.

    The domains that wait take turns, in the order in which they began to wait; within a domain it is first come, first
    served. Whoever asked must ``leave``, also if it was never granted.

    Args:
        maximum: how many there are.

    Example:
        >>> places = Places(maximum=1)
        >>> first, second = places.ask("a"), places.ask("b")
        >>> places.leave(first)
        >>> second.granted.is_set()
        True
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._share = max(1, maximum // 2)
        self._held: set[Place] = set()
        self._of_domain: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[Place]] = OrderedDict()

    @property
    def is_waited_for(self) -> bool:
        """Whether anybody has asked and got none yet."""
        return bool(self._waiting)

    def ask(self, domain: str) -> Place:
        """A place for that domain: granted at once if it can be, else when it is its turn."""
        place = Place(domain)
        self._waiting.setdefault(domain, deque()).append(place)
        self._grant()
        return place

    def leave(self, place: Place) -> None:
        """Give a place back, or wait for it no longer. Harmless if that was said before."""
        if place in self._held:
            self._held.remove(place)
            self._of_domain[place.domain] -= 1
            if not self._of_domain[place.domain]:
                del self._of_domain[place.domain]
        elif place in self._waiting.get(place.domain, ()):
            self._waiting[place.domain].remove(place)
            if not self._waiting[place.domain]:
                del self._waiting[place.domain]
        self._grant()

    def lacking(self) -> Iterator[tuple[str | None, int]]:
        """How many places somebody lacks now, and whose: those of one domain, or, for ``None``, anybody's."""
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
            place = queue.popleft()
            if queue:
                self._waiting[turn] = queue
            self._held.add(place)
            self._of_domain[turn] += 1
            place.granted.set()
