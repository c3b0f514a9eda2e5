"""The interface of transports: that of httpx, connecting only to the given peer."""

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
    """The peer of a request. It is stored in the extensions of the request, where each transport must look it up.

    Args:
        name: the host in the URL, used for the certificate and the ``Host`` header.
        address: the address to connect to, which was checked against the grant. ``None`` if the proxy resolves the
            name.
        proxy: the proxy that opens a tunnel to the address, or ``None`` for a direct connection.
    """

    name: str
    address: Address | None
    proxy: RequestTarget | None = None

    def attach(self, request: httpx.Request) -> None:
        """Set this peer as the destination of a request."""
        request.extensions = {**request.extensions, _PEER: self}


def peer_of(request: httpx.Request) -> Peer:
    """Return the peer of a request. A request without a peer was not checked, which is a bug."""
    peer = request.extensions[_PEER]
    assert isinstance(peer, Peer)  # noqa: S101
    return peer


@frozen
class TransportOptions:
    """The options of a transport.

    Args:
        tls: the TLS context; empty and unused for ``http``.
        http2: whether HTTP/2 may be negotiated.
        max_connections: the maximum number of open connections. Further requests wait.
        tunnels: opens tunnels for peers with a proxy; ``None`` if the transport gets no such peers.
    """

    tls: ssl.SSLContext
    http2: bool
    max_connections: int
    tunnels: Tunnels | None = None


class HttpTransportFactory(Protocol):
    """A factory of transports. Pass another one to replace the httpx transport."""

    def __call__(self, options: TransportOptions) -> httpx.AsyncBaseTransport:
        """Return a transport that does not follow redirects, keep cookies or read the environment.

        It must connect only to ``peer_of(request)``: it must not resolve names, and may reuse a connection only for the
        same peer, port and scheme. It must use ``peer.name`` for the certificate and the ``Host`` header.
        """
