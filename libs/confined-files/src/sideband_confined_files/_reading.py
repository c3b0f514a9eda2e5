"""An ordinary file, read piece by piece."""

from __future__ import annotations

import os

from anyio import CapacityLimiter, from_thread, to_thread
from attrs import define, field

from ._listing import FolderEntry
from ._steps import PIECE, digest_of, translating


@define
class FileReader:
    """An ordinary file that is open for reading.

    Attributes:
        path: how messages call it.
        entry: what was known about it when it was opened.
    """

    path: str
    entry: FolderEntry
    _descriptor: int
    _limiter: CapacityLimiter | None
    _position: int = field(default=0, init=False)

    async def read(self, size: int = PIECE) -> bytes:
        """The next piece, at most ``size`` bytes; empty at the end.

        Raises:
            FileFailed: the system refuses.
        """
        piece = await to_thread.run_sync(self._read, size, limiter=self._limiter)
        self._position += len(piece)
        return piece

    def seek(self, position: int) -> None:
        """Go on reading at this byte."""
        self._position = position

    async def digest(self) -> str:
        """The SHA-256 of all of it, in hexadecimal, wherever it is read now.

        Raises:
            FileFailed: the system refuses.
        """

        def work() -> str:
            with translating(self.path):
                return digest_of(self._descriptor)

        return await to_thread.run_sync(work, limiter=self._limiter)

    def _read(self, size: int) -> bytes:
        from_thread.check_cancelled()
        with translating(self.path):
            return os.pread(self._descriptor, size, self._position)
