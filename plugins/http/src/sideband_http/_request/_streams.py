"""Bodies as httpx streams. Closing a stream releases all of its resources.

Importing httpx is slow, so this module is imported with the first request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

import httpx
from sideband.blobs import BlobDamaged

from ._bodies import BlobBody, Body

_PIECE_BYTES = 65_536


def stream_of(body: Body) -> httpx.AsyncByteStream:
    """Return a stream that can be restarted, to send the body to another address of the same server."""
    return BytesStream(body) if isinstance(body, bytes) else _BlobStream(body)


class BytesStream(httpx.AsyncByteStream):
    """Bytes in memory, split into pieces so that other tasks can run between them."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Pieces(self.content)


class _Pieces(AsyncIterator[bytes]):
    # Not a generator: an abandoned generator would be finalized at an arbitrary time.
    def __init__(self, content: bytes) -> None:
        self._rest = memoryview(content)

    async def __anext__(self) -> bytes:
        if not self._rest:
            raise StopAsyncIteration
        piece, self._rest = self._rest[:_PIECE_BYTES], self._rest[_PIECE_BYTES:]
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
    """Yield the pieces of a blob. The last one follows the check of the digest, so a damaged blob is never complete."""
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
