"""A thread-safe connection that keeps track of its current transaction.

A cancelled task may leave a thread behind that still runs its statement, since asyncio's cancellation does not wait for
threads. Therefore threads are serialized, a late thread finds that its transaction has ended, and each new operation
rolls back what a late thread may have left open.

Each method takes a ``limit``: on the event loop it is the number of characters that the operation may handle, and the
method raises ``NotOnLoop`` before it has changed anything if it would take longer or wait. In a thread it is ``None``.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from attrs import define, field
from sideband import StoreError

from ._statements import NotOnLoop

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")
# A transaction that changed more rows is committed in a thread, since a commit writes each changed page.
_ROWS_ON_LOOP = 32


@define(eq=False)
class TransactionState:
    """One transaction. The connection identifies it by this object.

    Attributes:
        ended: whether it has been committed or rolled back.
        rows: the connection's number of changed rows when it began.
        long: whether one of its operations had to run in a thread.
    """

    ended: bool = False
    rows: int = 0
    long: bool = False


@define
class Connection:
    """A connection to SQLite that can be used from several threads.

    Attributes:
        database: the connection.
        commits: the number of commits that may have changed something.
    """

    database: sqlite3.Connection
    commits: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _current: TransactionState | None = field(default=None, init=False)
    _log_begun: bool = field(default=False, init=False)

    def begin(self, limit: int | None, state: TransactionState) -> None:
        """Begin a transaction for writing."""
        self._take(limit)
        try:
            if not state.ended:
                self._rollback()
                self.database.execute("BEGIN IMMEDIATE")
                state.rows = self.database.total_changes
                self._current = state
        finally:
            self._lock.release()

    def within(
        self,
        limit: int | None,
        state: TransactionState,
        job: Callable[[int | None, sqlite3.Connection, *_Arguments], _Result],
        *arguments: *_Arguments,
    ) -> _Result:
        """Run a statement of a transaction. An error of SQLite ends the transaction."""
        self._take(limit)
        try:
            self._check(state)
            state.long = state.long or limit is None
            return job(limit, self.database, *arguments)
        except sqlite3.Error:
            self._end(state)
            raise
        finally:
            self._lock.release()

    def commit(self, limit: int | None, state: TransactionState) -> None:
        """Commit the transaction."""
        self._take(limit)
        try:
            self._check(state)
            changed = self.database.total_changes - state.rows
            if limit is not None and (state.long or changed > _ROWS_ON_LOOP or (changed and not self._log_begun)):
                raise NotOnLoop
            self.database.execute("COMMIT")
            if changed:
                self._count_commit()
            self._end(state)
        finally:
            self._lock.release()

    def end(self, limit: int | None, state: TransactionState) -> None:
        """Roll back the transaction unless it was committed."""
        self._take(limit)
        try:
            self._end(state)
        finally:
            self._lock.release()

    def read(
        self,
        limit: int | None,
        job: Callable[[int | None, sqlite3.Connection, *_Arguments], _Result],
        *arguments: *_Arguments,
    ) -> _Result:
        """Run a reading statement outside of a transaction."""
        self._take(limit)
        try:
            if limit is not None and self._current is not None:
                raise NotOnLoop  # the transaction of another task is open
            self._rollback()
            return job(limit, self.database, *arguments)
        finally:
            self._lock.release()

    def write(
        self,
        limit: int | None,
        job: Callable[[int | None, sqlite3.Connection, *_Arguments], _Result],
        *arguments: *_Arguments,
    ) -> _Result:
        """Run statements in their own transaction."""
        self._take(limit)
        try:
            if limit is not None and not self._log_begun:
                raise NotOnLoop
            self._rollback()
            self.database.execute("BEGIN IMMEDIATE")
            try:
                result = job(limit, self.database, *arguments)
                self.database.execute("COMMIT")
            except BaseException:
                self._rollback()
                raise
            self._count_commit()
            return result
        finally:
            self._lock.release()

    def foreign_commits(self) -> int | None:
        """Return a number that changes with each commit of another connection, or ``None`` if it cannot be read now."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return int(self.database.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:
            return None
        finally:
            self._lock.release()

    def checkpoint(self) -> None:
        """Move the log into the database file and begin a new log. Syncs several times: only for threads."""
        with self._lock:
            self._rollback()
            self.database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            # The first commit of a new log syncs its header, even with synchronous = NORMAL. Make that commit here
            # instead of on the event loop: the number has this value already.
            version = int(self.database.execute("PRAGMA user_version").fetchone()[0])
            self.database.execute(f"PRAGMA user_version = {version}")

    def close(self) -> None:
        """Roll back an open transaction and close the file."""
        with self._lock:
            self._rollback()
            self.database.close()

    def _take(self, limit: int | None) -> None:
        """Take the lock. The event loop does not wait for a thread that a cancelled task has left behind."""
        if not self._lock.acquire(blocking=limit is None):
            raise NotOnLoop

    def _check(self, state: TransactionState) -> None:
        # SQLite may have rolled back by itself (full disk); a further statement would start a new transaction.
        if self._current is not state or not self.database.in_transaction:
            raise StoreError(
                "the transaction has ended",
                hint="use it only inside its `async with`, and not after a failed statement",
            )

    def _count_commit(self) -> None:
        self._log_begun = True
        self.commits += 1

    def _end(self, state: TransactionState) -> None:
        state.ended = True
        if self._current is state:
            self._rollback()

    def _rollback(self) -> None:
        self._current = None
        if self.database.in_transaction:
            self.database.execute("ROLLBACK")
