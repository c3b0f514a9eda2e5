"""The lock of the folder: whoever writes to it, or takes a picture of it, holds it for a moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ..state import FileLock
from ._errors import LedgerBusy, LedgerError, LedgerUnwritable


def folder_lock(folder: Path) -> FileLock:
    """A lock between processes, and between the hosts of one process."""
    return FileLock(folder / "lock")


@asynccontextmanager
async def held(lock: FileLock, patience: float) -> AsyncIterator[None]:
    """Hold it, once whoever has it is done. Nothing may be awaited inside.

    Raises:
        LedgerBusy: it was not free within ``patience`` seconds.
        LedgerUnwritable: it can't be locked, or the system refused what was done inside.
    """
    folder = lock.path.parent
    try:
        if not await lock.acquire_async(patience):
            raise LedgerBusy(folder, patience)
        try:
            yield
        finally:
            lock.release()
    except LedgerError:
        raise
    except OSError as error:
        raise LedgerUnwritable(folder, error) from error
