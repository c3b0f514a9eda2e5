"""The response of a service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import anyio
from attrs import field, frozen
from sideband.providers import ProviderError

from ._access import ServiceAccess
from ._errors import broken, not_a_model, refused
from ._failures import exchange_failure
from ._requests import ServiceRequest

if TYPE_CHECKING:
    import httpx

_CLOSE_SECONDS = 5.0
_DRAIN_SECONDS = 0.2
_MAX_ERROR_BYTES = 64 << 10
_WEB_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EVENT_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
# Enough to recognize an event stream, and the limit of the whitespace before it.
_SHORTEST_START, _LONGEST_START = 6, 4 << 10


class PeekableChunks:
    """The chunks of a body, whose beginning can be read in advance."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._peeked = b""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._peeked:
            chunk, self._peeked = self._peeked, b""
            return chunk
        return await anext(self._chunks)

    async def peek(self) -> bytes:
        """Return the beginning of the body: up to a few visible bytes, or its end. It is read again later."""
        with suppress(StopAsyncIteration):
            while len(self._peeked.lstrip()) < _SHORTEST_START and len(self._peeked) < _LONGEST_START:
                self._peeked += await anext(self._chunks)
        return self._peeked


@frozen(eq=False)
class ServiceReply:
    """A response whose headers have arrived.

    Attributes:
        access: the access that was used.
        status: the HTTP status.
        headers: the headers, with names in lower case.
        chunks: the body, in chunks as they arrive. Reading may raise any ``ProviderError``.

    Example:
        >>> async def texts(connections, request):
        ...     async with connections.exchange(request) as reply:
        ...         await reply.check()
        ...         async with aclosing(read_events(reply.chunks)) as events:
        ...             async for event in events:
        ...                 yield event.data
        ...         await reply.drain()
    """

    access: ServiceAccess
    status: int
    headers: Mapping[str, str] = field(repr=False)
    chunks: PeekableChunks = field(converter=PeekableChunks, repr=False)

    @property
    def kind(self) -> str:
        """The content type in lower case, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def check(self) -> None:
        """Check that the status and headers are those of a model response.

        Raises:
            ProviderRefused: if the status is not 200, or the response is a web page.
            StreamBroken: if the response is compressed, although the request did not accept compression.
        """
        encoding = self.headers.get("content-encoding", "").strip().lower()
        is_compressed = encoding not in {"", "identity"}
        if self.status != 200:
            body = "" if is_compressed else await self._read_error()
            raise refused(self.access, self.status, body, self.headers)
        if is_compressed:
            raise broken(self.access, f"the response is compressed (`{encoding}`), although this was not requested")
        if self.kind in _WEB_PAGES:
            raise not_a_model(self.access, "a web page", await self._read_error(), self.headers)

    async def is_json(self) -> bool:
        """Return whether the body is JSON, rather than an event stream. Its beginning decides, not its content type.

        Raises:
            ProviderRefused: if it is neither: it can never be read.
            ProviderError: if reading fails.
        """
        start = (await self.chunks.peek()).removeprefix(_BYTE_ORDER_MARK).lstrip()
        if start.startswith((b"{", b"[")):
            return True
        if start and self.kind != "text/event-stream" and not start.startswith(_EVENT_FIELDS):
            what = f"`{self.kind}`" if self.kind else "text"
            raise not_a_model(self.access, what, await self._read_error(), self.headers)
        return False

    async def text(self, most: int) -> str:
        """Read up to ``most`` bytes of the body and decode them as UTF-8. Invalid bytes are replaced.

        Raises:
            ProviderError: if reading fails.
        """
        content = bytearray()
        async for chunk in self.chunks:
            content += chunk
            if len(content) >= most:
                break
        return bytes(content[:most]).decode("utf-8", "replace")

    async def drain(self) -> None:
        """Read the rest of the body after the protocol's end marker, so that the connection can be reused.

        The response is already complete, so errors are ignored.
        """
        with anyio.move_on_after(_DRAIN_SECONDS), suppress(ProviderError):
            async for _ in self.chunks:
                pass

    async def _read_error(self) -> str:
        """Read an error response. If it is truncated, return what has arrived."""
        content = bytearray()
        with suppress(ProviderError):
            async for chunk in self.chunks:
                content += chunk
                if len(content) >= _MAX_ERROR_BYTES:
                    break
        return bytes(content[:_MAX_ERROR_BYTES]).decode("utf-8", "replace")


class ReplyBody:
    """The body of a response, up to a size limit.

    Attributes:
        is_complete: whether the whole body was read.
    """

    def __init__(self, request: ServiceRequest, response: httpx.Response) -> None:
        self.is_complete = False
        self._is_over = False
        self._request = request
        self._response = response
        self._raw = aiter(cast("httpx.AsyncByteStream", response.stream))
        self._left = request.largest

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._is_over:
            raise StopAsyncIteration
        try:
            chunk = await anext(self._raw)
        except StopAsyncIteration:
            self.is_complete = self._is_over = True
            raise
        except Exception as error:
            self._is_over = True
            known = exchange_failure(self._request, error, begun=True)
            if known is None:
                raise
            raise known from error
        self._left -= len(chunk)
        if self._left < 0:
            self._is_over = True
            raise broken(self._request.access, f"the response exceeds {self._request.largest:,} bytes")
        return chunk

    async def aclose(self) -> None:
        """Stop reading, and close the connection unless the whole body was read.

        The client's generators are nested. Closing the outer one would leave the inner ones to the garbage collector,
        which finalizes them later, in another task. A cancelled read ends all of them here.
        """
        if not self.is_complete:
            with anyio.CancelScope(shield=True) as scope:
                scope.cancel()
                with suppress(Exception):
                    async for _ in self._raw:
                        pass
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(Exception):
            await self._response.aclose()
