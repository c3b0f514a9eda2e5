"""What a request may carry: bytes at hand, or a blob that is read while it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import frozen
from sideband.blobs import Blob, BlobStore


@frozen
class BlobBody:
    """A blob as a body."""

    store: BlobStore
    blob: Blob

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """Its pieces.

        Raises:
            BlobMissing: it is gone.
            BlobDamaged: at the end: it has another digest.
        """
        async with self.store.open(self.blob.sha256) as reader:
            yield reader


Body = bytes | BlobBody


def size_of(body: Body | None) -> int:
    """How many bytes are sent."""
    if body is None:
        return 0
    return len(body) if isinstance(body, bytes) else body.blob.size
