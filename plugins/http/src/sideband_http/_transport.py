"""The one seam to the network: nothing else opens connections. Whatever serves httpx's interface fits in."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, Self

import anyio
from attrs import define, evolve, field, frozen

from ._addresses import Address
from ._errors import ConnectFailed, HttpError, HttpTimeout, ProtocolFailed, ProxyFailed, TlsFailed, UrlInvalid
from ._proxies import ProxyRules
from ._resolving import Resolver, SystemResolver
from ._trust import Trust
from ._url import Target

if TYPE_CHECKING:
    import httpx

    from ._tunnels import Tunnels

__all__ = [
    "IDEMPOTENT",
    "Connections",
    "Peer",
    "TransportFactory",
    "TransportOptions",
    "Trust",
    "httpx_transport",
    "is_about_tls",
    "peer_of",
    "translated",
]

_CLOSE_SECONDS = 5.0
_PEER = "sideband_peer"
_MOST_REACHED = 1_024
_TransportKey = tuple[str, bool, str | None, bool]
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


@frozen
class Peer:
    """Who a request goes to. It stands in the request's extensions, where each transport must look for it.

    Args:
        name: the host of the URL. It is who the certificate must be for, and what is told to the server.
        address: what to connect to: the only one that was checked against the grant. ``None`` where the proxy alone
            can resolve names.
        proxy: who to ask for a tunnel there; ``None``: nobody.
    """

    name: str
    address: Address | None
    proxy: Target | None = None

    def attach(self, request: httpx.Request) -> None:
        """Make a request go here."""
        request.extensions = {**request.extensions, _PEER: self}


def peer_of(request: httpx.Request) -> Peer:
    """Who a request goes to. A request without a peer was not checked: that it is sent is a defect."""
    peer = request.extensions[_PEER]
    assert isinstance(peer, Peer)  # noqa: S101
    return peer


@frozen
class TransportOptions:
    """What a transport must hold to.

    Args:
        tls: decides which servers are trusted; for ``http`` it trusts nobody and is not used.
        http2: whether HTTP/2 may be agreed on.
        max_connections: how many may be open at once; further requests wait.
        tunnels: opens those of peers with a proxy. A transport that is given ``None`` gets no such peers.
    """

    tls: ssl.SSLContext
    http2: bool
    max_connections: int
    tunnels: Tunnels | None = None


class TransportFactory(Protocol):
    """Makes transports. Another one replaces httpx's own without any other change."""

    def __call__(self, options: TransportOptions) -> httpx.AsyncBaseTransport:
        """A transport that follows no redirects, keeps no cookies and reads no environment.

        It connects to ``peer_of(request)`` and nowhere else: it looks no name up, and uses a connection again only for
        a request to an equal peer (and port and scheme). Name and certificate are those of ``peer.name``.
        """


def httpx_transport(options: TransportOptions) -> httpx.AsyncBaseTransport:
    """The transport that comes with httpx, for asyncio and trio."""
    from ._pinned_transport import PinnedTransport  # noqa: PLC0415  it imports httpx

    return PinnedTransport(options)


def _trusts_nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@define
class Connections:
    """The open connections of the host, or of one session. Keeps neither cookies nor credentials."""

    trust: Trust
    max_connections: int
    factory: TransportFactory = httpx_transport
    resolver: Resolver = field(factory=SystemResolver)
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


@contextmanager
def translated(method: str, target: Target, seconds: float) -> Iterator[None]:
    """Turn what the transport raises into errors of this family."""
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    retryable = method in IDEMPOTENT
    try:
        yield
    except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise HttpTimeout(method, target.origin, seconds, retryable=True) from error
    except httpx.TimeoutException as error:
        raise HttpTimeout(method, target.origin, seconds, retryable=retryable) from error
    except httpx.ProxyError as error:
        raise ProxyFailed(target.origin, str(error)) from error
    except httpx.ConnectError as error:
        failure = TlsFailed if is_about_tls(error) else ConnectFailed
        raise failure(target.origin, str(error)) from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UrlInvalid(target.url, str(error)) from error
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise ProtocolFailed(method, target.origin, reason, retryable=retryable) from error


def is_about_tls(error: BaseException) -> bool:
    """Whether a connection failed since the server could not prove who it is."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
