"""What a service answers."""

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
_LONGEST_ERROR = 64 << 10
_WEB_PAGES = frozenset({"text/html", "application/xhtml+xml"})


@frozen(eq=False)
class ServiceReply:
    """An answer that has begun.

    Attributes:
        access: how the service was reached.
        status: the HTTP status.
        headers: the headers, with names in lower case.
        chunks: the body, as it comes. Reading it may raise any ``ProviderError``.

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
    chunks: AsyncIterator[bytes] = field(repr=False)

    @property
    def kind(self) -> str:
        """The content type in lower case, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def check(self) -> None:
        """Refuse an answer that is not one of a model, as far as its head tells.

        Raises:
            ProviderRefused: the status is not 200, or the answer is a web page.
            StreamBroken: the answer is compressed, which was not asked for.
        """
        encoding = self.headers.get("content-encoding", "").strip().lower()
        is_compressed = encoding not in {"", "identity"}
        if self.status != 200:
            said = "" if is_compressed else await self._beginning()
            raise refused(self.access, self.status, said, self.headers)
        if is_compressed:
            raise broken(self.access, f"the answer is compressed (`{encoding}`), which was not asked for")
        if self.kind in _WEB_PAGES:
            raise not_a_model(self.access, "a web page", await self._beginning(), self.headers)

    async def text(self, most: int) -> str:
        """Read the body, as far as ``most`` bytes. Bytes that are not UTF-8 are replaced.

        Raises:
            ProviderError: the answer breaks off.
        """
        content = bytearray()
        async for chunk in self.chunks:
            content += chunk
            if len(content) >= most:
                break
        return bytes(content[:most]).decode("utf-8", "replace")

    async def drain(self) -> None:
        """Read what may follow the end of the protocol, so that the connection can be used again.

        The answer is whole by then, so what goes wrong here is passed over.
        """
        with anyio.move_on_after(_DRAIN_SECONDS), suppress(ProviderError):
            async for _ in self.chunks:
                pass

    async def _beginning(self) -> str:
        """What an error says, as far as it comes: it says something even if it is cut."""
        content = bytearray()
        with suppress(ProviderError):
            async for chunk in self.chunks:
                content += chunk
                if len(content) >= _LONGEST_ERROR:
                    break
        return bytes(content[:_LONGEST_ERROR]).decode("utf-8", "replace")


class ReplyBody:
    """The bytes of an answer, of which there may be no more than a limit.

    Attributes:
        is_whole: whether all of it was read.
    """

    def __init__(self, request: ServiceRequest, response: httpx.Response) -> None:
        self.is_whole = False
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
            self.is_whole = self._is_over = True
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
            raise broken(self._request.access, f"the answer has more than {self._request.largest:,} bytes")
        return chunk

    async def aclose(self) -> None:
        """End the reading wherever it is, and the connection with it unless all was read.

        The client's generators are nested, and closing the outer one would leave the inner ones to the garbage
        collector, which ends them at another time, in another task. A read that is cancelled ends them all, here.
        """
        if not self.is_whole:
            with anyio.CancelScope(shield=True) as scope:
                scope.cancel()
                with suppress(Exception):
                    async for _ in self._raw:
                        pass
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(Exception):
            await self._response.aclose()
