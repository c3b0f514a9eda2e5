"""The only module that opens connections. The transport is replaceable."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import anyio
import anyio.to_thread
from attrs import define, field

from ._failures import exchange_failure
from ._replies import ReplyBody, ServiceReply
from ._requests import ServiceRequest

if TYPE_CHECKING:
    import httpx

_CLOSE_SECONDS = 5.0
_MAX_IDLE = 256  # as many sessions as use one service at a time
_KEEP_SECONDS = 30.0


class ServiceTransportFactory(Protocol):
    """A factory of transports. Pass another one to replace the default transport.

    Example:
        >>> def mocked(tls):
        ...     return httpx.MockTransport(lambda request: httpx.Response(200, json={"data": []}))
        >>> connections = ServiceConnections(transports=mocked)
    """

    def __call__(self, tls: ssl.SSLContext | None) -> httpx.AsyncBaseTransport:
        """Return a transport that handles one request at a time.

        It must not read the environment. ``tls`` decides which certificates are trusted.
        """


@cache
def _empty_context() -> ssl.SSLContext:
    """Return a context that trusts nothing, for connections without TLS. Without one, httpx loads all certificates."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _default_transport(tls: ssl.SSLContext | None) -> httpx.AsyncBaseTransport:
    """Return a transport of aiohttp, which is several times as fast, if it is installed and the backend is asyncio."""
    if not _is_asyncio() or not _has_aiohttp():
        return _httpx_transport(tls)
    from .fast_transport import AiohttpTransport  # noqa: PLC0415  slow to import, and optional

    return AiohttpTransport(tls, max_connections=1, keep_seconds=_KEEP_SECONDS)


@cache
def _has_aiohttp() -> bool:
    try:
        from .fast_transport import AiohttpTransport  # noqa: F401, PLC0415  as above
    except ImportError:
        return False
    return True


def _is_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _httpx_transport(tls: ssl.SSLContext | None) -> httpx.AsyncBaseTransport:
    """Return the transport of httpx, which supports asyncio and trio."""
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    return httpx.AsyncHTTPTransport(
        verify=_empty_context() if tls is None else tls,
        trust_env=False,
        limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=_KEEP_SECONDS),
    )


@define(eq=False)
class ServiceConnections:
    """A plugin's connections to its services. Open it in the plugin's ``lifespan``.

    Cookies are not kept, redirects are not followed, and neither proxies nor certificates are read from the
    environment. Each request has exclusive use of a transport, because a shared pool scans all of its connections on
    every request.

    Args:
        ca_file: a PEM file of certificate authorities to trust in addition to the public ones.
        transports: the factory of the transports.

    Example:
        >>> @asynccontextmanager
        ... async def lifespan(ctx):
        ...     async with ServiceConnections(ctx.config.ca_file) as connections:
        ...         yield connections
    """

    ca_file: Path | None = None
    transports: ServiceTransportFactory = _default_transport
    _idle: dict[str, deque[tuple[float, httpx.AsyncBaseTransport]]] = field(factory=dict, init=False)
    _tls: ssl.SSLContext | None = field(default=None, init=False)
    _lock: anyio.Lock = field(factory=anyio.Lock, init=False)
    _closed: bool = field(default=False, init=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    @asynccontextmanager
    async def exchange(self, request: ServiceRequest) -> AsyncIterator[ServiceReply]:
        """Send a request and yield the reply once its headers have arrived. Leaving early closes the connection.

        Raises:
            EgressRefused: if the body contains a secret.
            ProviderError: if no response arrives.

        Example:
            >>> async def models(connections, access):
            ...     async with connections.exchange(ServiceRequest(access, "/models")) as reply:
            ...         await reply.check()
            ...         return parse_object(await reply.text(4 << 20))["data"]
        """
        origin = request.access.address.origin
        content = request.checked_content()
        transport = await self._acquire(origin)
        body: ReplyBody | None = None
        try:
            response = await _send(transport, request, content)
            body = ReplyBody(request, response)
            headers = {name.lower(): value for name, value in response.headers.items()}
            yield ServiceReply(request.access, response.status_code, headers, body)
        finally:
            if body is not None:
                await body.aclose()
            await self._release(origin, transport, reusable=body is not None and body.is_complete)

    async def aclose(self) -> None:
        """Close idle connections. A connection in use is closed when its request ends."""
        self._closed = True
        while self._idle:
            _, transports = self._idle.popitem()
            for _, transport in transports:
                await _close(transport)

    async def _acquire(self, origin: str) -> httpx.AsyncBaseTransport:
        if self._idle.get(origin):
            return self._idle[origin].pop()[1]
        return self.transports(await self._tls_context() if origin.startswith("https:") else None)

    async def _tls_context(self) -> ssl.SSLContext:
        """Return the shared TLS context. Loading it takes 20 ms, so it is done once, in a thread."""
        async with self._lock:
            if self._tls is None:
                self._tls = await anyio.to_thread.run_sync(self._load)
            return self._tls

    def _load(self) -> ssl.SSLContext:
        import certifi  # noqa: PLC0415  only https needs it

        context = ssl.create_default_context(cafile=certifi.where())
        if self.ca_file is not None:
            context.load_verify_locations(cafile=self.ca_file.expanduser())
        return context

    async def _release(self, origin: str, transport: httpx.AsyncBaseTransport, *, reusable: bool) -> None:
        idle = self._idle.setdefault(origin, deque())
        now = anyio.current_time()
        if reusable and not self._closed and len(idle) < _MAX_IDLE:
            idle.append((now, transport))
        else:
            await _close(transport)
        while idle and now - idle[0][0] > _KEEP_SECONDS:
            await _close(idle.popleft()[1])


async def _send(transport: httpx.AsyncBaseTransport, request: ServiceRequest, content: bytes | None) -> httpx.Response:
    try:
        return await transport.handle_async_request(request.for_httpx(content))
    except Exception as error:
        known = exchange_failure(request, error, begun=False)
        if known is None:
            raise
        raise known from error


async def _close(transport: httpx.AsyncBaseTransport) -> None:
    with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(Exception):
        await transport.aclose()
