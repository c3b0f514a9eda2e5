"""Read a regular file in chunks."""

from __future__ import annotations

import os

from anyio import CapacityLimiter, from_thread, to_thread
from attrs import define, field

from ._listing import FolderEntry
from ._steps import PIECE, digest_of, translating


@define
class FileReader:
    """A regular file that is open for reading.

    Attributes:
        path: its path as shown in messages.
        entry: its metadata at the time when it was opened.
    """

    path: str
    entry: FolderEntry
    _descriptor: int
    _limiter: CapacityLimiter | None
    _position: int = field(default=0, init=False)

    async def read(self, size: int = PIECE) -> bytes:
        """Read the next chunk of at most ``size`` bytes; empty at end of file.

        Raises:
            FileFailed: if a system call fails.
        """
        piece = await to_thread.run_sync(self._read, size, limiter=self._limiter)
        self._position += len(piece)
        return piece

    def seek(self, position: int) -> None:
        """Continue reading at this byte offset."""
        self._position = position

    async def digest(self) -> str:
        """Return the SHA-256 of the whole file in hexadecimal. Leaves the read position unchanged.

        Raises:
            FileFailed: if a system call fails.
        """

        def work() -> str:
            with translating(self.path):
                return digest_of(self._descriptor)

        return await to_thread.run_sync(work, limiter=self._limiter)

    def _read(self, size: int) -> bytes:
        from_thread.check_cancelled()
        with translating(self.path):
            return os.pread(self._descriptor, size, self._position)
