"""The lock of the folder: whoever writes to it, or takes a picture of it, holds it for a moment."""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from attrs import define, field

from ._errors import LedgerBusy, LedgerUnwritable

__all__ = ["FolderLock"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.000_05, 0.005


@define
class FolderLock:
    """A lock between processes, and between the hosts of one process."""

    folder: Path
    _descriptor: int | None = field(default=None, init=False)

    def acquire(self) -> bool:
        """Take it, unless someone has it; whether it was taken."""
        if self._descriptor is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(self.folder / "lock", flags, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Give it back."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    @asynccontextmanager
    async def held(self, patience: float) -> AsyncIterator[None]:
        """Hold it, once whoever has it is done. Nothing may be awaited inside.

        It is polled for, since waiting for a file lock can't be cancelled.

        Raises:
            LedgerBusy: it was not free within ``patience`` seconds.
        """
        try:
            taken = self.acquire()
            with anyio.move_on_after(patience):
                pause = _FIRST_PAUSE
                while not taken:
                    await anyio.sleep(pause)
                    taken = self.acquire()
                    pause = min(2 * pause, _LONGEST_PAUSE)
        except OSError as error:
            raise LedgerUnwritable(self.folder, error) from error
        if not taken:
            raise LedgerBusy(self.folder, patience)
        try:
            yield
        finally:
            self.release()

    def close(self) -> None:
        """Close its file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
