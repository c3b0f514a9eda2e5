"""The connections of the host and of each session, by transport."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import anyio
from attrs import define, evolve, field

from .._addresses._classes import Address
from .._addresses._resolving import AddressResolver, SystemResolver
from .._errors import HttpError
from ._choice import httpx_transport
from ._interface import HttpTransportFactory, Peer, TransportOptions
from ._proxies import ProxyRules
from ._trust import Trust

if TYPE_CHECKING:
    import httpx

    from ._tunnels import Tunnels

_CLOSE_SECONDS = 5.0
_MAX_REACHED = 1_024
_TransportKey = tuple[str, bool, str | None, bool]


def _empty_context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@define
class HttpConnections:
    """The open connections of the host or of a session. They hold neither cookies nor credentials."""

    trust: Trust
    max_connections: int
    factory: HttpTransportFactory = httpx_transport
    resolver: AddressResolver = field(factory=SystemResolver)
    proxies: ProxyRules = field(factory=ProxyRules)
    proxy_auth: str | None = None
    _reached: dict[str, Address | None] = field(factory=dict, init=False)
    _transports: dict[_TransportKey, httpx.AsyncBaseTransport] = field(factory=dict, init=False)
    _closed: bool = field(default=False, init=False)

    async def transport(
        self, scheme: str, *, http2: bool, origin: str | None = None, proxied: bool = False
    ) -> httpx.AsyncBaseTransport:
        """Return the transport for requests.

        Args:
            scheme: the scheme of their URLs.
            http2: whether HTTP/2 may be negotiated.
            origin: their origin. An origin with a client certificate has its own transport.
            proxied: whether they use a proxy, which only the httpx transport supports.
        """
        certified = origin if origin in self.trust.certificates else None
        key = (scheme, http2 and scheme == "https", certified, proxied)
        tls = await self.trust.context(http2=key[1], origin=certified) if scheme == "https" else _empty_context()
        if self._closed:
            raise HttpError("the connections are closed", hint="the host is shutting down")
        if key not in self._transports:
            factory = httpx_transport if proxied else self.factory
            options = TransportOptions(tls, key[1], self.max_connections, self._tunnels() if proxied else None)
            self._transports[key] = factory(options)
        return self._transports[key]

    def _tunnels(self) -> Tunnels:
        from ._tunnels import Tunnels  # noqa: PLC0415  it imports httpcore

        return Tunnels(self.trust, self.resolver, self.trust.unlock, self.proxy_auth)

    def another(self) -> Self:
        """Return new connections with the same settings."""
        return evolve(self)

    def in_order(self, peers: Sequence[Peer]) -> list[Peer]:
        """Return the peers of a name, starting with the last one that was reached, which may still be connected."""
        return sorted(peers, key=lambda peer: self._reached.get(peer.name) != peer.address)

    def reached(self, peer: Peer) -> None:
        """Remember the peer that was reached."""
        if self._reached.get(peer.name) != peer.address:
            if len(self._reached) >= _MAX_REACHED:
                self._reached.clear()
            self._reached[peer.name] = peer.address

    async def aclose(self) -> None:
        """Close all connections within five seconds."""
        self._closed = True
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            while self._transports:
                _, transport = self._transports.popitem()
                await transport.aclose()
