"""The one seam to the network: the only module that opens connections. Whatever serves httpx's interface fits in."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import anyio
from attrs import define, field, frozen

from ._access import Access
from ._errors import broken, insecure, silent, unreachable

if TYPE_CHECKING:
    import httpx

__all__ = ["Answer", "Call", "Connections", "TransportFactory", "httpx_transport"]

_CLOSE_SECONDS = 5.0
_DRAIN_SECONDS = 0.25
_MOST_IDLE = 32
_MOST_BYTES = 256 << 20


@frozen
class Call:
    """One request.

    Attributes:
        access: where it goes.
        method: ``GET`` or ``POST``.
        path: below the address.
        content: the body, JSON; ``None`` for none.
        connect: seconds for making a connection.
        idle: seconds of silence.
    """

    access: Access
    method: str
    path: str
    content: bytes | None = field(default=None, repr=False)
    connect: float = 10.0
    idle: float = 300.0


@frozen
class Answer:
    """What a server began to answer.

    Attributes:
        status: the HTTP status.
        headers: with lower-case names.
        chunks: the body, as it comes.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]

    @property
    def kind(self) -> str:
        """The content type, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def text(self, most: int) -> str:
        """The body, as far as ``most`` bytes. What is no UTF-8 is replaced."""
        content = bytearray()
        async for chunk in self.chunks:
            content += chunk
            if len(content) >= most:
                break
        return bytes(content[:most]).decode("utf-8", "replace")

    async def drain(self) -> None:
        """Read what may follow the end of the protocol, so that the connection can be used again."""
        with anyio.move_on_after(_DRAIN_SECONDS):
            async for _ in self.chunks:
                pass


class TransportFactory(Protocol):
    """Makes transports. Another one replaces httpx's own without any other change."""

    def __call__(self, tls: ssl.SSLContext | None) -> httpx.AsyncBaseTransport:
        """A transport for one request at a time, that reads no environment; ``tls`` decides whom https trusts."""


def httpx_transport(tls: ssl.SSLContext | None) -> httpx.AsyncBaseTransport:
    """The transport that comes with httpx, for asyncio and trio."""
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    return httpx.AsyncHTTPTransport(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if tls is None else tls,
        trust_env=False,
        limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=30.0),
    )


@define
class Connections:
    """The connections of the host to services of models. They keep no cookies and follow no redirects.

    Each request has a transport of its own while it lasts: one pool for all would look through all on each request.
    """

    ca_file: Path | None = None
    factory: TransportFactory = httpx_transport
    _idle: dict[str, list[httpx.AsyncBaseTransport]] = field(factory=dict, init=False)
    _tls: ssl.SSLContext | None = field(default=None, init=False)
    _lock: anyio.Lock = field(factory=anyio.Lock, init=False)
    _closed: bool = field(default=False, init=False)

    @asynccontextmanager
    async def exchange(self, call: Call) -> AsyncIterator[Answer]:
        """Send a request; its answer's body is still to come. Leaving early closes the connection.

        Raises:
            ProviderError: there is no answer, or it breaks off.
        """
        transport = await self._take(call.access.address.origin)
        body = _Body(call)
        try:
            with _translated(call, begun=False):
                response = await transport.handle_async_request(_request(call))
            body.of(response)
            headers = {name.lower(): value for name, value in response.headers.items()}
            with _translated(call, begun=True):
                yield Answer(response.status_code, headers, body)
        finally:
            await self._give_back(call.access.address.origin, transport, body)

    async def aclose(self) -> None:
        """Close all that are not in use; the others close when their request ends."""
        self._closed = True
        while self._idle:
            _, transports = self._idle.popitem()
            for transport in transports:
                await _close(transport)

    async def _take(self, origin: str) -> httpx.AsyncBaseTransport:
        if self._idle.get(origin):
            return self._idle[origin].pop()
        return self.factory(await self._trust() if origin.startswith("https:") else None)

    async def _trust(self) -> ssl.SSLContext:
        """The certificate authorities that are trusted. Loading them takes 20 ms, so it is done once, in a thread."""
        async with self._lock:
            if self._tls is None:
                self._tls = await anyio.to_thread.run_sync(self._load)
            return self._tls

    def _load(self) -> ssl.SSLContext:
        import certifi  # noqa: PLC0415  only https needs it

        context = ssl.create_default_context(cafile=certifi.where())
        if self.ca_file is not None:
            context.load_verify_locations(cafile=self.ca_file)
        return context

    async def _give_back(self, origin: str, transport: httpx.AsyncBaseTransport, body: _Body) -> None:
        await body.aclose()
        idle = self._idle.setdefault(origin, [])
        if body.is_whole and not self._closed and len(idle) < _MOST_IDLE:
            idle.append(transport)
        else:
            await _close(transport)


class _Body:
    """The bytes of an answer, of which there may be no more than a limit."""

    def __init__(self, call: Call) -> None:
        self.is_whole = False
        self._call = call
        self._response: httpx.Response | None = None
        self._raw: AsyncIterator[bytes] | None = None
        self._left = _MOST_BYTES

    def of(self, response: httpx.Response) -> None:
        self._response = response
        self._raw = aiter(cast("httpx.AsyncByteStream", response.stream))

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._raw is None or self.is_whole:
            raise StopAsyncIteration
        try:
            chunk = await anext(self._raw)
        except StopAsyncIteration:
            self.is_whole = True
            raise
        self._left -= len(chunk)
        if self._left < 0:
            raise broken(self._call.access, f"the answer has more than {_MOST_BYTES:,} bytes")
        return chunk

    async def aclose(self) -> None:
        """End the reading wherever it is, and the connection with it unless all was read.

        The client's generators are nested, and closing the outer one would leave the inner ones to the garbage
        collector, which ends them at another time, in another task. A read that is cancelled ends them all, here.
        """
        if self._raw is not None and not self.is_whole:
            with anyio.CancelScope(shield=True) as scope:
                scope.cancel()
                with suppress(Exception):
                    async for _ in self._raw:
                        pass
        if self._response is not None:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(Exception):
                await self._response.aclose()


async def _close(transport: httpx.AsyncBaseTransport) -> None:
    with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(Exception):
        await transport.aclose()


def _request(call: Call) -> httpx.Request:
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    # Nothing compressed is asked for: a few bytes of it could become any amount.
    headers = {"accept": "text/event-stream, application/json", "accept-encoding": "identity", **call.access.headers}
    if call.content is not None:
        headers["content-type"] = "application/json"
    timeout = httpx.Timeout(call.idle, connect=call.connect)
    return httpx.Request(
        call.method,
        call.access.address.url + call.path,
        headers=headers,
        content=call.content,
        extensions={"timeout": timeout.as_dict()},
    )


@contextmanager
def _translated(call: Call, *, begun: bool) -> Iterator[None]:
    """Turn what the transport raises into the errors of providers."""
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    access = call.access
    try:
        yield
    except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise silent(access, "no connection", call.connect, type(error).__name__) from error
    except httpx.TimeoutException as error:
        what = "nothing more" if begun else "no answer"
        raise silent(access, what, call.idle, type(error).__name__) from error
    except httpx.ConnectError as error:
        failure = insecure if _is_about_tls(error) else unreachable
        raise failure(access, str(error), type(error).__name__) from error
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
        if begun:
            raise broken(access, f"the answer broke off: {reason}", type(error).__name__) from error
        raise unreachable(access, reason, type(error).__name__) from error


def _is_about_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
