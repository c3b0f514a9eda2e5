"""Name resolution, once per request, so that the checked address is the one that is connected to."""

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

_LOOKUP_SECONDS = 10.0
_CACHE_SECONDS = 10.0
_MAX_CACHED = 1_024
# A thread that waits for a name server cannot be stopped, so the number of waiting threads is limited.
_MAX_LOOKUPS = 64
_MAX_LOOKUPS_PER_DOMAIN = 16
_LOOPBACK = (ip_address("127.0.0.1"), ip_address("::1"))


class NameUnresolved(Exception):
    """A name has no usable address, or the lookup timed out."""


class AddressResolver(Protocol):
    """Resolves host names."""

    async def resolve(self, host: str, domain: str) -> tuple[Address, ...]:
        """Return the addresses of a host, the preferred ones first, at least one.

        Args:
            host: a name, or an address as text.
            domain: the trust domain of the caller, which limits its concurrent lookups.

        Raises:
            NameUnresolved: if the name has no usable address.
        """


def system_lookup(host: str) -> Sequence[Any]:
    """Resolve a name with the system's resolver. Blocks."""
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)


@frozen
class _CachedAddresses:
    addresses: tuple[Address, ...]
    until: float


@define
class SystemResolver:
    """The system's resolver: hosts file, search domains and DNS. Results are cached for ten seconds.

    Args:
        lookup: the blocking lookup function.
    """

    lookup: Lookup = system_lookup
    _cache: dict[str, _CachedAddresses] = field(factory=dict, init=False)
    _slots: _LookupSlots = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._slots = _LookupSlots()

    async def resolve(self, host: str, domain: str) -> tuple[Address, ...]:
        """See ``AddressResolver``. Addresses and ``localhost`` need no lookup."""
        if (address := literal(host)) is not None:
            return (address,)
        if is_this_machine(host):
            return _LOOPBACK
        cached = self._cache.get(host)
        if cached is None or cached.until <= anyio.current_time():
            addresses = await self._look_up(host, domain)
            cached = _CachedAddresses(addresses, anyio.current_time() + _CACHE_SECONDS)
            self._store(host, cached)
        return cached.addresses

    async def _look_up(self, host: str, domain: str) -> tuple[Address, ...]:
        slot = self._slots.acquire(domain)
        try:
            with anyio.move_on_after(_LOOKUP_SECONDS):
                # A limiter of its own: the default one releases an abandoned thread's slot while the thread still runs.
                found = await anyio.to_thread.run_sync(
                    slot.run, self.lookup, host, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
                )
                return _addresses(found)
        except (OSError, UnicodeError) as error:
            raise NameUnresolved(str(error)) from None
        finally:
            slot.release_unless_running()
        raise NameUnresolved(f"name resolution timed out after {_LOOKUP_SECONDS:g} s")

    def _store(self, host: str, cached: _CachedAddresses) -> None:
        self._cache.pop(host, None)
        if len(self._cache) >= _MAX_CACHED:
            self._cache.pop(next(iter(self._cache)))
        self._cache[host] = cached


def _addresses(found: Iterable[Any]) -> tuple[Address, ...]:
    addresses: dict[Address, None] = {}
    for *_, socket_address in found:
        text = str(socket_address[0])
        address = literal(text)
        if address is None or (len(socket_address) == 4 and socket_address[3]):
            raise NameUnresolved(f"the name resolves to {text}, which is specific to a network interface")
        addresses[address] = None
    if not addresses:
        raise NameUnresolved("the name has no address")
    return tuple(addresses)


class _LookupSlots:
    """The slots for concurrent lookups. A slot is held until its thread ends."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    def acquire(self, domain: str) -> _LookupSlot:
        with self._lock:
            if self._taken.total() >= _MAX_LOOKUPS or self._taken[domain] >= _MAX_LOOKUPS_PER_DOMAIN:
                raise NameUnresolved("too many concurrent lookups")
            self._taken[domain] += 1
        return _LookupSlot(self, domain)

    def release(self, domain: str) -> None:
        with self._lock:
            self._taken[domain] -= 1
            if not self._taken[domain]:
                del self._taken[domain]


@define
class _LookupSlot:
    _slots: _LookupSlots
    _domain: str
    _state: str = field(default="acquired", init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def run(self, lookup: Lookup, host: str) -> Sequence[Any]:
        with self._lock:
            if self._state == "released":
                return ()
            self._state = "running"
        try:
            return lookup(host)
        finally:
            self._slots.release(self._domain)

    def release_unless_running(self) -> None:
        with self._lock:
            if self._state == "running":
                return
            self._state = "released"
        self._slots.release(self._domain)
