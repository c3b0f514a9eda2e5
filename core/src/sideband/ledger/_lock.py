"""The lock of the ledger folder. Writers, and readers that need a consistent view, hold it briefly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ..state import FileLock
from ._errors import LedgerBusy, LedgerError, LedgerUnwritable


def folder_lock(folder: Path) -> FileLock:
    """Return the lock between processes, and between the hosts of one process."""
    return FileLock(folder / "lock")


@asynccontextmanager
async def held(lock: FileLock, patience: float) -> AsyncIterator[None]:
    """Wait for the lock and hold it during the body, which must not await.

    Raises:
        LedgerBusy: if the lock was not acquired within ``patience`` seconds.
        LedgerUnwritable: if the lock file cannot be locked, or if the body raised an ``OSError``.
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
