"""The HTTP transport of all requests to servers and their authorization servers: limited, and pinned to an address."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import cast

import anyio
import httpx2

from .._errors import McpInvalid, McpTooLarge, McpUnavailable
from ._failure import ConnectionFailure

_UNICAST, _TRANSLATED = IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96")  # RFC 4291, RFC 6052


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Resolves a host once, refuses addresses that are not allowed, and limits the size of responses.

    The body of a response is one message. Streams of events are limited by event, by the SDK. Compressed responses are
    not asked for, and refused: a small one could become a huge message.

    Args:
        server: the name of the server, for errors.
        failure: gets the reason if the connection fails.
        limit: the maximum size of a message in bytes.
        local: whether addresses may be those of this machine or of a private network.
    """

    def __init__(self, server: str, failure: ConnectionFailure, *, limit: int, local: bool) -> None:
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)
        self._server, self._failure, self._limit, self._local = server, failure, limit, local

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to one of the addresses of its host."""
        host, problem = request.url.host, None
        headers = request.headers.copy()
        headers["accept-encoding"] = "identity"
        for address in await self._addresses(host, request.url.port or 443):
            # The name is resolved once: a second answer could be another address than the one that was checked.
            # The request itself is unchanged: it may be sent again, with an authorization.
            pinned = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                response = await self._inner.handle_async_request(pinned)
            except httpx2.ConnectError as error:
                problem = error
                continue
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                await response.aclose()
                raise self._failure.set(McpInvalid(self._server, "its response is compressed"))
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                body = cast("httpx2.AsyncByteStream", response.stream)
                response.stream = _LimitedStream(body, self._limit, self._too_large)
            return response
        raise problem or McpUnavailable(self._server, f"`{host}` has no address")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise McpUnavailable(self._server, f"the host `{host}` was not found", hint="check its address") from error
        addresses = [str(one[4][0]) for one in found]
        for one in addresses:
            if not self._local and not is_public(ip_address(one)):
                raise McpUnavailable(
                    self._server,
                    f"`{host}` has the address {one}, which is not public",
                    hint=f"set `local = true` in `[plugins.mcp.servers.{self._server}]` if this is your own network",
                )
        return addresses

    def _too_large(self) -> McpTooLarge:
        error = McpTooLarge(self._server, "a message", self._limit, "max_message_bytes")
        self._failure.set(error)
        return error


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is public. The address that a network may translate it to must be public too."""
    if address in _TRANSLATED:
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    if isinstance(address, IPv6Address):
        inner = address.sixtofour
        return address in _UNICAST and address.is_global and (inner is None or is_public(inner))
    return address.is_global and not address.is_multicast


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, limit: int, too_large: Callable[[], McpTooLarge]) -> None:
        self._inner, self._limit, self._too_large = inner, limit, too_large

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > self._limit:
                raise self._too_large()
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
