"""Bodies in the form that httpx's interface takes. Nothing of them is left open once they are closed.

Imports httpx, which is slow; so it is itself imported with the first request only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

import httpx
from sideband.blobs import BlobDamaged

from ._bodies import BlobBody, Body

_PIECE = 65_536


def stream_of(body: Body) -> httpx.AsyncByteStream:
    """A stream that can be read again from its beginning, for another address of the same server."""
    return BytesStream(body) if isinstance(body, bytes) else _BlobStream(body)


class BytesStream(httpx.AsyncByteStream):
    """Bytes at hand, in pieces, between which others get their turn."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Pieces(self.content)


class _Pieces(AsyncIterator[bytes]):
    # No generator: a client that gives up leaves those half-way, to be ended whenever.
    def __init__(self, content: bytes) -> None:
        self._rest = memoryview(content)

    async def __anext__(self) -> bytes:
        if not self._rest:
            raise StopAsyncIteration
        piece, self._rest = self._rest[:_PIECE], self._rest[_PIECE:]
        return bytes(piece)


class _BlobStream(httpx.AsyncByteStream):
    def __init__(self, body: BlobBody) -> None:
        self._body = body
        self._pieces: AsyncGenerator[bytes, None] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        self._pieces = _whole(self._body)
        return self._pieces

    async def aclose(self) -> None:
        if self._pieces is not None:
            await self._pieces.aclose()


async def _whole(body: BlobBody) -> AsyncGenerator[bytes, None]:
    """The pieces of a blob. The last one only comes once the digest was found right: nobody gets another one whole."""
    held = b""
    size = 0
    async with body.reading() as pieces:
        async for piece in pieces:
            size += len(piece)
            if held:
                yield held
            held = piece
        if size != body.blob.size:
            raise BlobDamaged(body.blob.sha256)
        if held:
            yield held
