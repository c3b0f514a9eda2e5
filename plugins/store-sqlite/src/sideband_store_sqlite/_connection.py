"""The connection, and which transaction may use it at the moment.

A task that is cancelled may leave a thread behind that still runs its statement: asyncio's own cancellation does not
wait for it. So threads take turns, a thread that comes too late finds its transaction over, and whoever begins takes
back what such a thread may have left open.
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
    """Whether one transaction has ended. Each has a state of its own, by which the connection knows it."""

    over: bool = False


@define
class Connection:
    """A connection to SQLite, for use from threads."""

    database: sqlite3.Connection
    _turn: threading.Lock = field(factory=threading.Lock, init=False)
    _current: TransactionState | None = field(default=None, init=False)

    def begin(self, state: TransactionState) -> None:
        """Begin a transaction that may write."""
        with self._turn:
            if not state.over:
                self._take_back()
                self.database.execute("BEGIN IMMEDIATE")
                self._current = state

    def within(
        self,
        state: TransactionState,
        job: Callable[[sqlite3.Connection, *_Arguments], _Result],
        *arguments: *_Arguments,
    ) -> _Result:
        """Run a statement of a transaction. One that SQLite fails ends the transaction."""
        with self._turn:
            self._check(state)
            try:
                return job(self.database, *arguments)
            except sqlite3.Error:
                self._over(state)
                raise

    def commit(self, state: TransactionState) -> None:
        """Keep what the transaction did."""
        with self._turn:
            self._check(state)
            self.database.execute("COMMIT")
            self._over(state)

    def end(self, state: TransactionState) -> None:
        """Take back what the transaction did, unless it was committed."""
        with self._turn:
            self._over(state)

    def read(self, job: Callable[[sqlite3.Connection, *_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        """Run a statement that only reads, by itself."""
        with self._turn:
            self._take_back()
            return job(self.database, *arguments)

    def write(self, job: Callable[[sqlite3.Connection, *_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        """Run statements as a transaction of their own."""
        with self._turn:
            self._take_back()
            self.database.execute("BEGIN IMMEDIATE")
            try:
                result = job(self.database, *arguments)
                self.database.execute("COMMIT")
            except BaseException:
                self._take_back()
                raise
            return result

    def close(self) -> None:
        """Take back what is open, and close the file."""
        with self._turn:
            self._take_back()
            self.database.close()

    def _check(self, state: TransactionState) -> None:
        # SQLite itself may have taken everything back (full disk); what followed would be a transaction of its own.
        if self._current is not state or not self.database.in_transaction:
            raise StoreError(
                "the transaction is over", hint="it ended with its `async with`, or when one of its statements failed"
            )

    def _over(self, state: TransactionState) -> None:
        state.over = True
        if self._current is state:
            self._take_back()

    def _take_back(self) -> None:
        self._current = None
        if self.database.in_transaction:
            self.database.execute("ROLLBACK")
