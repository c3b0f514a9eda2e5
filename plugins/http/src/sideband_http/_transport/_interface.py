"""What a transport is: whatever serves httpx's interface, and connects where it is told to and nowhere else."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from .._addresses._classes import Address
from .._addresses._url import RequestTarget

if TYPE_CHECKING:
    import httpx

    from ._tunnels import Tunnels

_PEER = "sideband_peer"


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
    proxy: RequestTarget | None = None

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


class HttpTransportFactory(Protocol):
    """Makes transports. Another one replaces httpx's own without any other change."""

    def __call__(self, options: TransportOptions) -> httpx.AsyncBaseTransport:
        """A transport that follows no redirects, keeps no cookies and reads no environment.

        It connects to ``peer_of(request)`` and nowhere else: it looks no name up, and uses a connection again only for
        a request to an equal peer (and port and scheme). Name and certificate are those of ``peer.name``.
        """
