"""The httpx transport, changed to connect only to the checked address.

httpx resolves names itself, and its pool shares connections by name. Here a connection belongs to a name *and* an
address, so that a request is never sent to an address other than its checked one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import anyio
import httpcore
import httpx
from sideband.ops import OpError

from .._addresses._url import parse_url
from ._clean_pool import CleanPool
from ._closing_stream import ClosingStream
from ._interface import Peer, TransportOptions, peer_of
from ._tunnels import Tunnels

_KEEPALIVE_SECONDS = 15.0
_HTTP2 = frozenset({"h2", "hpack", "hyperframe"})


class PinnedTransport(httpx.AsyncBaseTransport):
    """Sends each request to its ``peer``."""

    def __init__(self, options: TransportOptions) -> None:
        self._pool = CleanPool(
            ssl_context=options.tls,
            http1=True,
            http2=options.http2,
            max_connections=options.max_connections,
            max_keepalive_connections=options.max_connections,
            keepalive_expiry=_KEEPALIVE_SECONDS,
            network_backend=_PinnedBackend(options.tunnels),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response before its body is read."""
        peer = peer_of(request)
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=_pool_host(peer),
            port=request.url.port or {"http": 80, "https": 443}[request.url.scheme],
            target=request.url.raw_path,
        )
        upload = request.stream
        assert isinstance(upload, httpx.AsyncByteStream)  # noqa: S101
        try:
            with _as_httpx():
                response = await self._pool.handle_async_request(
                    httpcore.Request(
                        method=request.method,
                        url=url,
                        headers=request.headers.raw,
                        content=upload,
                        extensions={**request.extensions, "sni_hostname": peer.name},
                    )
                )
        except BaseException:
            await upload.aclose()
            raise
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_PinnedBody(response.stream, upload),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


def _pool_host(peer: Peer) -> bytes:
    """Return the host name for the pool. No part contains a space, so different peers have different names."""
    return f"{peer.address or ''} {peer.name} {peer.proxy.origin if peer.proxy else ''}".encode("ascii")


class _PinnedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to the hosts of ``_pool_host``."""

    def __init__(self, tunnels: Tunnels | None) -> None:
        self._network = httpcore.AnyIOBackend()
        self._tunnels = tunnels

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the pool passes it
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the address in a pool host, directly or through its proxy."""
        address, name, proxy = host.split(" ")
        if proxy:
            return await self._tunnel(proxy, address or name, port, timeout)
        stream = await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
        reached = stream.get_extra_info("server_addr")
        if ip_address(reached[0]) != ip_address(address):
            await stream.aclose()
            raise httpcore.ConnectError(f"connected to {reached[0]} instead of {address}")
        return ClosingStream(stream)

    async def _tunnel(self, proxy: str, host: str, port: int, seconds: float | None) -> httpcore.AsyncNetworkStream:
        assert self._tunnels is not None  # noqa: S101  see TransportOptions
        authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            with anyio.fail_after(seconds):
                return ClosingStream(await self._tunnels.open(self._network, parse_url(proxy), authority))
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"{proxy} timed out") from None

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await self._network.sleep(seconds)


class _PinnedBody(httpx.AsyncByteStream):
    def __init__(self, stream: Any, upload: httpx.AsyncByteStream) -> None:
        self._stream = stream
        self._upload = upload

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx():
            async for piece in self._stream:
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
        await self._upload.aclose()


@contextmanager
def _as_httpx() -> Iterator[None]:
    """Convert httpcore errors to the httpx errors of the same names."""
    try:
        yield
    except OpError:
        # raised by the request body
        raise
    except Exception as error:
        for kind in type(error).__mro__:
            library = kind.__module__.partition(".")[0]
            if library == "httpcore" and hasattr(httpx, kind.__name__):
                raise getattr(httpx, kind.__name__)(str(error)) from error
            if library in _HTTP2 or kind is ValueError:
                # httpcore does not convert these, such as for frames out of order or an invalid status
                raise httpx.RemoteProtocolError(str(error)) from error
        raise
