"""Request bodies: bytes in memory, or a blob that is streamed."""

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
        """Open the blob and yield an iterator of its pieces.

        Raises:
            BlobMissing: if the blob no longer exists.
            BlobDamaged: at the end, if the digest does not match.
        """
        async with self.store.open(self.blob.sha256) as reader:
            yield reader


Body = bytes | BlobBody


def size_of(body: Body | None) -> int:
    """Return the size of a body in bytes."""
    if body is None:
        return 0
    return len(body) if isinstance(body, bytes) else body.blob.size
