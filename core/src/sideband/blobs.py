"""Blobs: bytes that are too large for a message, kept by their content in the host's state.

A blob is found by its SHA-256 and never changes. It is there whole or not at all, for the host's user only.

OpFailed
└── BlobError                                 blob.failed
    ├── BlobMissing(LookupError)              blob.missing     there is none with this digest
    ├── BlobDamaged(ValueError)               blob.damaged     what is there is something else
    ├── BlobTooLarge(ValueError)              blob.too_large
    └── BlobStorage(OSError)                  blob.storage     the file system refuses
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
    """What a grant must allow for a skill to get at blobs, through whichever op.

    Args:
        mode: ``read`` and ``write`` of what one knows by its digest or content; ``list`` and ``delete`` also of what
            others have kept. A capability that leaves it out means ``read`` and ``write``.
    """

    defaults: ClassVar[Mapping[str, tuple[str, ...]]] = {"mode": ("read", "write")}

    mode: str | None = None


@frozen
class Blob:
    """A blob that is there.

    Args:
        sha256: the digest of its content, 64 lower-case hexadecimal digits; its name.
        size: in bytes.
    """

    sha256: str
    size: int


class BlobError(OpFailed):
    """A blob could not be kept or had."""

    code = "blob.failed"


class BlobMissing(BlobError, LookupError):
    """There is no blob with this digest."""

    code = "blob.missing"

    def __init__(self, sha256: str) -> None:
        super().__init__(
            f"there is no blob `{sha256[:80]}`",
            hint="a blob is named by the SHA-256 of its content, 64 lower-case hexadecimal digits; keep it again",
        )
        self.nothing_happened = True


class BlobDamaged(BlobError, ValueError):
    """What is stored under this digest has another one."""

    code = "blob.damaged"

    def __init__(self, sha256: str) -> None:
        super().__init__(
            f"the blob `{sha256}` is damaged: its content has another digest",
            hint="keep the same content again, which mends it, or delete it",
        )


class BlobTooLarge(BlobError, ValueError):
    """It is larger than it may be. Nothing of it is kept."""

    code = "blob.too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(f"the blob is larger than {limit:,} bytes", hint="raise the limit, or take a part of it")
        self.nothing_happened = True


class BlobStorage(BlobError, OSError):
    """The file system refuses. Nothing is half-written."""

    code = "blob.storage"

    def __init__(self, folder: Path, error: OSError) -> None:
        super().__init__(
            f"a blob in `{folder}` can't be read or written: {error.strerror or type(error).__name__}",
            hint="look at free space and permissions",
        )


@define(eq=False)
class NewBlob:
    """A blob that is being written. Without a commit nothing is left of it."""

    _store: BlobStore
    _file: PartialFile
    _limit: int
    size: int = field(default=0, init=False)
    _digest: hashlib._Hash = field(factory=hashlib.sha256, init=False)
    _pending: bytearray = field(factory=bytearray, init=False)

    async def write(self, piece: bytes) -> None:
        """Add to the end.

        Raises:
            BlobTooLarge: it has more bytes now than it may have.
            BlobStorage: the disk is full, for instance.
        """
        self.size += len(piece)
        if self.size > self._limit:
            raise BlobTooLarge(self._limit)
        self._pending += piece
        if len(self._pending) >= _PIECE:
            await to_thread.run_sync(self._flush)

    async def commit(self) -> Blob:
        """Keep it, durably.

        Raises:
            BlobStorage: the file system refuses.
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
            # Over one that is there already: it might be damaged.
            self._file.commit(path)
        return blob

    def discard(self) -> None:
        """Let go of it; what was not committed is gone."""
        self._file.discard()


@define(eq=False)
class BlobReader:
    """A blob that is being read, piece by piece.

    Attributes:
        blob: which one.
    """

    blob: Blob
    _store: BlobStore
    _descriptor: int
    _digest: hashlib._Hash = field(factory=hashlib.sha256, init=False)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        # no generator: whoever stops early would have to close it
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
        folder: where they are; made when the first is kept.

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
        """A new blob of at most ``max_bytes``, to be written and committed.

        Raises:
            BlobStorage: the file system refuses.
        """
        new = await to_thread.run_sync(self._create, max_bytes)
        try:
            yield new
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(new.discard)

    async def put(self, data: bytes) -> Blob:
        """Keep these bytes.

        Raises:
            BlobStorage: the file system refuses.
        """
        async with self.create(max_bytes=len(data)) as new:
            await new.write(data)
            return await new.commit()

    @asynccontextmanager
    async def open(self, sha256: str) -> AsyncIterator[BlobReader]:
        """A reader of a blob. Whoever reads to the end knows that it was whole.

        Raises:
            BlobMissing: there is none.
            BlobDamaged: at the end of reading: the digest is another one.
            BlobStorage: the file system refuses.
        """
        descriptor, blob = await to_thread.run_sync(self._open, sha256)
        try:
            yield BlobReader(blob, self, descriptor)
        finally:
            os.close(descriptor)

    async def read(self, sha256: str, *, max_bytes: int) -> bytes:
        """The whole content.

        Raises:
            BlobMissing: there is none.
            BlobTooLarge: it has more than ``max_bytes``.
            BlobDamaged: the digest is another one.
        """
        async with self.open(sha256) as reader:
            if reader.blob.size > max_bytes:
                raise BlobTooLarge(max_bytes)
            return b"".join([piece async for piece in reader])

    async def find(self, sha256: str) -> Blob | None:
        """The blob, if it is there."""
        return await to_thread.run_sync(self._find, sha256)

    async def delete(self, sha256: str) -> bool:
        """Remove a blob, and tell whether it was there.

        Raises:
            BlobStorage: the file system refuses.
        """
        return await to_thread.run_sync(self._delete, sha256)

    async def list(self, *, limit: int = 1_000) -> tuple[Blob, ...]:
        """The blobs, by digest, ``limit`` of them at most."""
        return await to_thread.run_sync(self._list, limit)

    def path(self, sha256: str) -> Path:
        """Where the blob is, or would be.

        Raises:
            BlobMissing: this is no digest.
        """
        if not _DIGEST.match(sha256):
            raise BlobMissing(sha256)
        return self.folder / sha256[:2] / sha256[2:]

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Raise as ``BlobStorage`` what the file system raises inside."""
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
        """What hosts have left that were killed while they wrote."""
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
