"""Blobs: content-addressed binary data in the host's state, for data that is too large for a message.

A blob is identified by its SHA-256 and immutable. Writes are atomic. Only the host's user can read the files.

OpFailed
└── BlobError                                 blob.failed
    ├── BlobMissing(LookupError)              blob.missing     no blob has this digest
    ├── BlobDamaged(ValueError)               blob.damaged     the content does not match the digest
    ├── BlobTooLarge(ValueError)              blob.too_large
    └── BlobStorage(OSError)                  blob.storage     a file system operation failed
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import ClassVar, Self

import anyio
from anyio import to_thread
from attrs import define, field, frozen

from .ops._errors import OpFailed
from .ops._scope import Scope
from .state import PartialFile

__all__ = [
    "Blob",
    "BlobDamaged",
    "BlobError",
    "BlobMissing",
    "BlobReader",
    "BlobScope",
    "BlobStorage",
    "BlobStore",
    "BlobTooLarge",
    "NewBlob",
]

_PIECE = 1024 * 1024
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_TEMPORARY = ".part-"
_ABANDONED_SECONDS = 24 * 3_600.0
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@frozen
class BlobScope(Scope, family="blobs"):
    """The scope that a grant must allow for a skill to access blobs, through any op.

    Args:
        mode: ``read`` and ``write`` apply to blobs whose digest or content the caller knows; ``list`` and ``delete``
            also to blobs of other callers. The default in a capability is ``read`` and ``write``.
    """

    defaults: ClassVar[Mapping[str, tuple[str, ...]]] = {"mode": ("read", "write")}
    valid_values: ClassVar[Mapping[str, tuple[str, ...]]] = {"mode": ("read", "write", "list", "delete")}

    mode: str | None = None


@frozen
class Blob:
    """A stored blob.

    Args:
        sha256: the digest of the content, which identifies the blob: 64 lower-case hexadecimal digits.
        size: the size in bytes.
    """

    sha256: str
    size: int


class BlobError(OpFailed):
    """A blob could not be stored or read."""

    code = "blob.failed"
    shared = True


class BlobMissing(BlobError, LookupError):
    """No blob with this digest exists."""

    code = "blob.missing"

    def __init__(self, sha256: str) -> None:
        super().__init__(
            f"blob `{sha256[:80]}` does not exist",
            hint="pass the SHA-256 of the content as 64 lower-case hexadecimal digits, or store the content again",
        )
        self.nothing_happened = True


class BlobDamaged(BlobError, ValueError):
    """The stored content does not match its digest."""

    code = "blob.damaged"

    def __init__(self, sha256: str) -> None:
        super().__init__(
            f"blob `{sha256}` is damaged: its content does not match the digest",
            hint="store the same content again to repair it, or delete it",
        )


class BlobTooLarge(BlobError, ValueError):
    """The blob exceeds the size limit. Nothing was stored."""

    code = "blob.too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(f"blob exceeds the limit of {limit:,} bytes", hint="raise the limit, or request a part of it")
        self.nothing_happened = True


class BlobStorage(BlobError, OSError):
    """A file system operation failed. No partial content was stored."""

    code = "blob.storage"

    def __init__(self, folder: Path, error: OSError) -> None:
        super().__init__(
            f"cannot access a blob in `{folder}`: {error.strerror or type(error).__name__}",
            hint="check free space and permissions",
        )


@define(eq=False)
class NewBlob:
    """A blob that is being written. Its content is discarded unless it is committed."""

    _store: BlobStore
    _file: PartialFile
    _limit: int
    size: int = field(default=0, init=False)
    _digest: hashlib._Hash = field(factory=hashlib.sha256, init=False)
    _pending: bytearray = field(factory=bytearray, init=False)

    async def write(self, piece: bytes) -> None:
        """Append ``piece``.

        Raises:
            BlobTooLarge: if the blob now exceeds its size limit.
            BlobStorage: if the write failed, for example because the disk is full.
        """
        self.size += len(piece)
        if self.size > self._limit:
            raise BlobTooLarge(self._limit)
        self._pending += piece
        if len(self._pending) >= _PIECE:
            await to_thread.run_sync(self._flush)

    async def commit(self) -> Blob:
        """Store the blob durably.

        Raises:
            BlobStorage: if a file system operation failed.
        """
        return await to_thread.run_sync(self._commit)

    def _flush(self) -> None:
        self._digest.update(self._pending)
        with self._store.failures(), os.fdopen(self._file.descriptor, "wb", closefd=False) as file:
            file.write(self._pending)
        self._pending.clear()

    def _commit(self) -> Blob:
        self._flush()
        blob = Blob(self._digest.hexdigest(), self.size)
        with self._store.failures():
            path = self._store.path(blob.sha256)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            # Replace an existing blob too, because it may be damaged.
            self._file.commit(path)
        return blob

    def discard(self) -> None:
        """Remove the temporary file. Do nothing after a commit."""
        self._file.discard()


@define(eq=False)
class BlobReader:
    """A blob that is being read, as an iterator over its pieces.

    Attributes:
        blob: the digest and size of the blob.
    """

    blob: Blob
    _store: BlobStore
    _descriptor: int
    _digest: hashlib._Hash = field(factory=hashlib.sha256, init=False)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        # Not an async generator, because a caller that stops early would have to close it.
        if piece := await to_thread.run_sync(self._read):
            self._digest.update(piece)
            return piece
        if self._digest.hexdigest() != self.blob.sha256:
            raise BlobDamaged(self.blob.sha256)
        raise StopAsyncIteration

    def _read(self) -> bytes:
        with self._store.failures():
            return os.read(self._descriptor, _PIECE)


@define(eq=False)
class BlobStore:
    """The blobs of one host. Several hosts may share the folder.

    Args:
        folder: the folder of the blobs. It is created with the first blob.

    Example:
        >>> store = BlobStore(home / "blobs")
        >>> async with store.create(max_bytes=1 << 30) as new:
        ...     await new.write(b"some of it, ")
        ...     await new.write(b"and the rest")
        ...     blob = await new.commit()
        >>> async with store.open(blob.sha256) as reader:
        ...     async for piece in reader:
        ...         print(len(piece), "of", reader.blob.size)
    """

    folder: Path
    _prepared: bool = field(default=False, init=False)

    @asynccontextmanager
    async def create(self, *, max_bytes: int) -> AsyncIterator[NewBlob]:
        """Yield a new blob of at most ``max_bytes``, to be written and committed.

        Raises:
            BlobStorage: if a file system operation failed.
        """
        new = await to_thread.run_sync(self._create, max_bytes)
        try:
            yield new
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(new.discard)

    async def put(self, data: bytes) -> Blob:
        """Store these bytes.

        Raises:
            BlobStorage: if a file system operation failed.
        """
        async with self.create(max_bytes=len(data)) as new:
            await new.write(data)
            return await new.commit()

    @asynccontextmanager
    async def open(self, sha256: str) -> AsyncIterator[BlobReader]:
        """Yield a reader of a blob. It verifies the digest when it reaches the end.

        Raises:
            BlobMissing: if the blob does not exist.
            BlobDamaged: at the end of reading, if the content does not match the digest.
            BlobStorage: if a file system operation failed.
        """
        descriptor, blob = await to_thread.run_sync(self._open, sha256)
        try:
            yield BlobReader(blob, self, descriptor)
        finally:
            os.close(descriptor)

    async def read(self, sha256: str, *, max_bytes: int) -> bytes:
        """Return the whole content.

        Raises:
            BlobMissing: if the blob does not exist.
            BlobTooLarge: if it has more than ``max_bytes``.
            BlobDamaged: if the content does not match the digest.
        """
        async with self.open(sha256) as reader:
            if reader.blob.size > max_bytes:
                raise BlobTooLarge(max_bytes)
            return b"".join([piece async for piece in reader])

    async def find(self, sha256: str) -> Blob | None:
        """Return the blob, or ``None`` if it does not exist."""
        return await to_thread.run_sync(self._find, sha256)

    async def delete(self, sha256: str) -> bool:
        """Delete a blob and return whether it existed.

        Raises:
            BlobStorage: if a file system operation failed.
        """
        return await to_thread.run_sync(self._delete, sha256)

    async def list(self, *, limit: int = 1_000) -> tuple[Blob, ...]:
        """Return at most ``limit`` blobs, sorted by digest."""
        return await to_thread.run_sync(self._list, limit)

    def path(self, sha256: str) -> Path:
        """Return the path of the blob, whether or not it exists.

        Raises:
            BlobMissing: if ``sha256`` is not a valid digest.
        """
        if not _DIGEST.match(sha256):
            raise BlobMissing(sha256)
        return self.folder / sha256[:2] / sha256[2:]

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Convert an ``OSError`` of the body to ``BlobStorage``."""
        try:
            yield
        except OSError as error:
            raise BlobStorage(self.folder, error) from error

    def _create(self, max_bytes: int) -> NewBlob:
        with self.failures():
            if not self._prepared:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._remove_abandoned()
                self._prepared = True
            return NewBlob(self, PartialFile.create(self.folder / f"{_TEMPORARY}{token_hex(16)}"), max_bytes)

    def _remove_abandoned(self) -> None:
        """Remove old temporary files of hosts that were killed during a write."""
        before = time.time() - _ABANDONED_SECONDS
        for path in self.folder.glob(f"{_TEMPORARY}*"):
            with suppress(FileNotFoundError):
                if path.lstat().st_mtime < before:
                    path.unlink()

    def _open(self, sha256: str) -> tuple[int, Blob]:
        with self.failures():
            try:
                descriptor = os.open(self.path(sha256), _READ_FLAGS)
            except FileNotFoundError:
                raise BlobMissing(sha256) from None
        return descriptor, Blob(sha256, os.fstat(descriptor).st_size)

    def _find(self, sha256: str) -> Blob | None:
        with self.failures(), suppress(FileNotFoundError, NotADirectoryError, BlobMissing):
            return Blob(sha256, self.path(sha256).stat(follow_symlinks=False).st_size)
        return None

    def _delete(self, sha256: str) -> bool:
        with self.failures(), suppress(FileNotFoundError, BlobMissing):
            self.path(sha256).unlink()
            return True
        return False

    def _list(self, limit: int) -> tuple[Blob, ...]:
        with self.failures():
            return tuple(islice(self._all(), limit))

    def _all(self) -> Iterator[Blob]:
        for folder in sorted(self.folder.glob("??")):
            for path in sorted(folder.iterdir()):
                digest = folder.name + path.name
                with suppress(FileNotFoundError):
                    if _DIGEST.match(digest):
                        yield Blob(digest, path.lstat().st_size)
