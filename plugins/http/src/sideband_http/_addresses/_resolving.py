"""From a name to addresses, once for a request: what is checked is what is connected to."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from typing import Any, Protocol

import anyio
from attrs import define, field, frozen

from ._classes import Address, is_this_machine, literal

Lookup = Callable[[str], Sequence[Any]]

_SECONDS = 10.0
_REMEMBERED_SECONDS = 10.0
_MOST_REMEMBERED = 1_024
# Nobody can stop a thread that waits for a name server. So many may wait, in all and for one domain.
_MOST_LOOKUPS = 64
_MOST_FOR_ONE = 16
_THIS_MACHINE = (ip_address("127.0.0.1"), ip_address("::1"))


class NameUnresolved(Exception):
    """A name has no address that can be used, or nobody said which in time."""


class AddressResolver(Protocol):
    """Tells the addresses of names."""

    async def resolve(self, host: str, domain: str) -> tuple[Address, ...]:
        """The addresses of a host, the preferred ones first; at least one.

        Args:
            host: a name, or an address as text.
            domain: who asks. Nobody can take up all lookups.

        Raises:
            NameUnresolved: there are none.
        """


def system_lookup(host: str) -> Sequence[Any]:
    """What the system says about a name. Blocks."""
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)


@frozen
class _Remembered:
    addresses: tuple[Address, ...]
    until: float


@define
class SystemResolver:
    """The system's resolver: hosts file, search domains, DNS. An answer holds for ten seconds.

    Args:
        lookup: asks the system; blocks.
    """

    lookup: Lookup = system_lookup
    _answers: dict[str, _Remembered] = field(factory=dict, init=False)
    _places: _LookupPlaces = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._places = _LookupPlaces()

    async def resolve(self, host: str, domain: str) -> tuple[Address, ...]:
        """See ``AddressResolver``. Nobody is asked about addresses and ``localhost``."""
        if (address := literal(host)) is not None:
            return (address,)
        if is_this_machine(host):
            return _THIS_MACHINE
        remembered = self._answers.get(host)
        if remembered is None or remembered.until <= anyio.current_time():
            addresses = await self._ask(host, domain)
            remembered = _Remembered(addresses, anyio.current_time() + _REMEMBERED_SECONDS)
            self._remember(host, remembered)
        return remembered.addresses

    async def _ask(self, host: str, domain: str) -> tuple[Address, ...]:
        place = self._places.take(domain)
        try:
            with anyio.move_on_after(_SECONDS):
                # Its own limiter: the usual one would count a place as free as soon as nobody waits for the thread.
                found = await anyio.to_thread.run_sync(
                    place.use, self.lookup, host, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
                )
                return _addresses(found)
        except (OSError, UnicodeError) as error:
            raise NameUnresolved(str(error)) from None
        finally:
            place.leave_unless_used()
        raise NameUnresolved(f"no name server answered within {_SECONDS:g} s")

    def _remember(self, host: str, answer: _Remembered) -> None:
        self._answers.pop(host, None)
        if len(self._answers) >= _MOST_REMEMBERED:
            self._answers.pop(next(iter(self._answers)))
        self._answers[host] = answer


def _addresses(found: Iterable[Any]) -> tuple[Address, ...]:
    addresses: dict[Address, None] = {}
    for *_, place in found:
        text = str(place[0])
        address = literal(text)
        if address is None or (len(place) == 4 and place[3]):
            raise NameUnresolved(f"it stands for {text}, which is an address of one network card only")
        addresses[address] = None
    if not addresses:
        raise NameUnresolved("it has no address")
    return tuple(addresses)


class _LookupPlaces:
    """Who waits for a lookup. A place is taken until the thread has ended, which nobody can hasten."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, domain: str) -> _LookupPlace:
        with self._lock:
            if self._taken.total() >= _MOST_LOOKUPS or self._taken[domain] >= _MOST_FOR_ONE:
                raise NameUnresolved("too many names are being looked up")
            self._taken[domain] += 1
        return _LookupPlace(self, domain)

    def free(self, domain: str) -> None:
        with self._lock:
            self._taken[domain] -= 1
            if not self._taken[domain]:
                del self._taken[domain]


@define
class _LookupPlace:
    _places: _LookupPlaces
    _domain: str
    _state: str = field(default="taken", init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def use(self, lookup: Lookup, host: str) -> Sequence[Any]:
        with self._lock:
            if self._state == "left":
                return ()
            self._state = "used"
        try:
            return lookup(host)
        finally:
            self._places.free(self._domain)

    def leave_unless_used(self) -> None:
        with self._lock:
            if self._state == "used":
                return
            self._state = "left"
        self._places.free(self._domain)
