"""The write-ahead log: syncing it from outside SQLite, shared by concurrent tasks, and moving it into the database.

SQLite could sync each commit by itself (``synchronous = FULL``), but then the connection and the lock for writing are
held during the sync, other tasks and processes wait for it, and each commit needs one of its own. Therefore commits
only write to the log (``synchronous = NORMAL``) and a thread syncs the log through a descriptor of its own:

- A commit has written all its pages to the log when it returns. A sync of the file covers them whatever descriptor
  wrote them, and with them all earlier commits, also those of other processes.
- SQLite keeps the order: it syncs the header of a new log and its folder before the first commit, the log before a
  checkpoint moves pages out of it, and the database file before the log is reused. Therefore a commit that is no longer
  in the log is on disk in the database file.
- The log is neither replaced nor deleted while a connection is open. It is not locked by SQLite, so that closing the
  descriptor releases no lock; this would not hold for the database file and the ``-shm`` file.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from anyio import to_thread
from attrs import Factory, define, field
from sideband.state import GroupCommit

from ._connection import Connection
from ._errors import StoreUnwritable

_HINT = "check the disk for errors and free space, then restart"
# A checkpoint is due after this many changed rows (SQLite's default is 1,000 pages; a short row changes about two), or
# when the file has grown by this many bytes.
_ROWS_PER_CHECKPOINT = 500
_BYTES_PER_CHECKPOINT = 4 * 1024 * 1024


@define(eq=False)
class Log:
    """The write-ahead log of a connection.

    Attributes:
        path: the database file.
        descriptor: a descriptor of the log.
        connection: the connection.
    """

    path: Path
    descriptor: int
    connection: Connection
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _failure: OSError | None = field(default=None, init=False)
    # what is on disk: own and foreign commits; unknown at first, because a killed process may have left unsynced ones
    _synced: int = field(default=0, init=False)
    _synced_foreign: int | None = field(default=None, init=False)
    _group: GroupCommit = field(
        init=False, repr=False, default=Factory(lambda self: GroupCommit(self._sync_in_thread), takes_self=True)
    )
    _rows: int = field(default=0, init=False)
    _size: int = field(default=0, init=False)

    def unsynced(self) -> Callable[[], None] | None:
        """Return a job for a thread that brings all commits made so far to disk, or ``None`` if they are on disk."""
        commits, foreign = self.connection.commits, self.connection.foreign_commits()
        if commits == self._synced and foreign is not None and foreign == self._synced_foreign:
            return None
        return partial(self._sync, commits, foreign)

    async def sync(self) -> None:
        """Return when all commits made so far are on disk.

        Raises:
            StoreUnwritable: if a sync failed, now or earlier.
        """
        if self.unsynced() is not None:
            await self._group.wait()

    @property
    def checkpoint_due(self) -> bool:
        """Whether the log has become so long that it should be moved into the database file.

        Not after a failed sync: SQLite would sync it again first.
        """
        return self._failure is None and (
            self.connection.database.total_changes - self._rows >= _ROWS_PER_CHECKPOINT
            or os.fstat(self.descriptor).st_size - self._size >= _BYTES_PER_CHECKPOINT
        )

    def checkpoint(self) -> None:
        """Move the log into the database file. This syncs several times: it is only for threads.

        If it is not possible now, for example on a full disk, the log grows on and the next checkpoint moves more.
        """
        self._rows = self.connection.database.total_changes
        with suppress(sqlite3.Error):
            self.connection.checkpoint()
        self._size = os.fstat(self.descriptor).st_size

    def close(self) -> None:
        """Sync the log and close its connection."""
        try:
            job = self.unsynced()
            if job is not None:
                job()
        finally:
            with self._lock:  # not while a thread that a cancelled task left behind syncs
                self.connection.close()
                os.close(self.descriptor)

    def _sync(self, commits: int, foreign: int | None) -> None:
        with self._lock:
            if self._failure is not None:
                raise self._unwritable(self._failure)
            if commits <= self._synced and foreign is not None and foreign == self._synced_foreign:
                return  # a sync that ran meanwhile covers these
            try:
                # macOS has no fdatasync.
                getattr(os, "fdatasync", os.fsync)(self.descriptor)
            except OSError as error:
                # Never try again: the system may regard the lost pages as written, so that the next sync succeeds.
                self._failure = error
                raise self._unwritable(error) from error
            self._synced, self._synced_foreign = commits, foreign

    async def _sync_in_thread(self) -> None:
        job = self.unsynced()
        if job is not None:
            await to_thread.run_sync(job)

    def _unwritable(self, failure: OSError) -> StoreUnwritable:
        problem = f"its log could not be synced: {failure.strerror or failure}"
        return StoreUnwritable(self.path, problem, hint=_HINT)
