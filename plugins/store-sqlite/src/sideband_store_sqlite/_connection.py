"""A thread-safe connection that keeps track of its current transaction.

A cancelled task may leave a thread behind that still runs its statement, since asyncio's cancellation does not wait for
threads. Therefore threads are serialized, a late thread finds that its transaction has ended, and each new operation
rolls back what a late thread may have left open.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from attrs import define, field
from sideband import StoreError

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")


@define(eq=False)
class TransactionState:
    """Whether one transaction has ended. The connection identifies a transaction by this object."""

    ended: bool = False


@define
class Connection:
    """A connection to SQLite that can be used from several threads."""

    database: sqlite3.Connection
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _current: TransactionState | None = field(default=None, init=False)

    def begin(self, state: TransactionState) -> None:
        """Begin a transaction for writing."""
        with self._lock:
            if not state.ended:
                self._rollback()
                self.database.execute("BEGIN IMMEDIATE")
                self._current = state

    def within(
        self,
        state: TransactionState,
        job: Callable[[sqlite3.Connection, *_Arguments], _Result],
        *arguments: *_Arguments,
    ) -> _Result:
        """Run a statement of a transaction. An error of SQLite ends the transaction."""
        with self._lock:
            self._check(state)
            try:
                return job(self.database, *arguments)
            except sqlite3.Error:
                self._end(state)
                raise

    def commit(self, state: TransactionState) -> None:
        """Commit the transaction."""
        with self._lock:
            self._check(state)
            self.database.execute("COMMIT")
            self._end(state)

    def end(self, state: TransactionState) -> None:
        """Roll back the transaction unless it was committed."""
        with self._lock:
            self._end(state)

    def read(self, job: Callable[[sqlite3.Connection, *_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        """Run a reading statement outside of a transaction."""
        with self._lock:
            self._rollback()
            return job(self.database, *arguments)

    def write(self, job: Callable[[sqlite3.Connection, *_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        """Run statements in their own transaction."""
        with self._lock:
            self._rollback()
            self.database.execute("BEGIN IMMEDIATE")
            try:
                result = job(self.database, *arguments)
                self.database.execute("COMMIT")
            except BaseException:
                self._rollback()
                raise
            return result

    def close(self) -> None:
        """Roll back an open transaction and close the file."""
        with self._lock:
            self._rollback()
            self.database.close()

    def _check(self, state: TransactionState) -> None:
        # SQLite may have rolled back by itself (full disk); a further statement would start a new transaction.
        if self._current is not state or not self.database.in_transaction:
            raise StoreError(
                "the transaction has ended",
                hint="use it only inside its `async with`, and not after a failed statement",
            )

    def _end(self, state: TransactionState) -> None:
        state.ended = True
        if self._current is state:
            self._rollback()

    def _rollback(self) -> None:
        self._current = None
        if self.database.in_transaction:
            self.database.execute("ROLLBACK")
