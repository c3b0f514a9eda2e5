"""The connections of the host and of each session: which transport a request takes."""

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
_MOST_REACHED = 1_024
_TransportKey = tuple[str, bool, str | None, bool]


def _trusts_nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@define
class HttpConnections:
    """The open connections of the host, or of one session. Keeps neither cookies nor credentials."""

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
        """The transport for requests.

        Args:
            scheme: of their URLs.
            http2: whether HTTP/2 may be agreed on.
            origin: where they go. One that the host shows a certificate to has a transport of its own.
            proxied: whether they take a proxy, which is for httpx's own transport to do.
        """
        shown = origin if origin in self.trust.certificates else None
        key = (scheme, http2 and scheme == "https", shown, proxied)
        tls = await self.trust.context(http2=key[1], origin=shown) if scheme == "https" else _trusts_nobody()
        if self._closed:
            raise HttpError("the connections were closed while a request was about to start", hint="the host is ending")
        if key not in self._transports:
            factory = httpx_transport if proxied else self.factory
            options = TransportOptions(tls, key[1], self.max_connections, self._tunnels() if proxied else None)
            self._transports[key] = factory(options)
        return self._transports[key]

    def _tunnels(self) -> Tunnels:
        from ._tunnels import Tunnels  # noqa: PLC0415  it imports httpcore

        return Tunnels(self.trust, self.resolver, self.trust.unlock, self.proxy_auth)

    def another(self) -> Self:
        """Connections with the same settings, and none of these open."""
        return evolve(self)

    def in_order(self, peers: Sequence[Peer]) -> list[Peer]:
        """The peers of one name, first the one that answered last time: there may still be a connection to it."""
        return sorted(peers, key=lambda peer: self._reached.get(peer.name) != peer.address)

    def reached(self, peer: Peer) -> None:
        """Remember who answered."""
        if self._reached.get(peer.name) != peer.address:
            if len(self._reached) >= _MOST_REACHED:
                self._reached.clear()
            self._reached[peer.name] = peer.address

    async def aclose(self) -> None:
        """Close all. A server that does not let go is given five seconds."""
        self._closed = True
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            while self._transports:
                _, transport = self._transports.popitem()
                await transport.aclose()
