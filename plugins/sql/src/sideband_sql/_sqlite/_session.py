"""One SQLite connection: opened read-only or for changes, confined, monitored, and closed.

A statement is stopped in two ways: by SQLite's progress callback, and by an interrupt from another thread. Waiting for
the lock of another connection is a loop of short attempts, so that it can be stopped as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

import apsw
from anyio import from_thread
from attrs import define, field

from .._config import Config
from .._errors import SqlSyntax, SqlTimeout
from .._limits import take_all
from .._paths import DatabaseTarget, identities
from .._protocols import Bindings, Changed, Inverse
from ._authorizer import Authorizer
from ._changesets import Recording, revert
from ._failures import FAILURES, is_interrupted, refusal, typed_error
from ._marks import is_marked, mark
from ._statement import StatementCheck
from ._system_calls import AllowedDatabase, allow_only, open_close_lock

T = TypeVar("T")

_SECONDS_BETWEEN_TRIES = 0.01


@define(eq=False)
class SqliteAnswer:
    """The rows of a running statement.

    Args:
        columns: the column names.
    """

    columns: Sequence[str]
    _session: SqliteSession
    _cursor: apsw.Cursor

    def __iter__(self) -> Iterator[Sequence[Any]]:
        """Iterate over the remaining rows."""
        with self._session.failures():
            # a `with` per row would cost more than the row itself; exceptions of the consumer do not enter here
            yield from self._cursor


@define(eq=False)
class SqliteSession:
    """An open, confined connection.

    Args:
        connection: in autocommit mode; statements of users can neither begin nor end a transaction.
        target: the main database.
        config: the limits.
        authorizer: what statements may do.
        allowed: the databases whose files may be opened.
        aliases: of the attached databases.
    """

    connection: apsw.Connection
    target: DatabaseTarget
    config: Config
    authorizer: Authorizer
    allowed: Sequence[AllowedDatabase]
    aliases: Sequence[str] = ()
    resources: ExitStack = field(init=False, factory=ExitStack)
    _ends: float = field(init=False, default=0.0)
    _stopped: bool = field(init=False, default=False)
    _refused: Callable[[], str | None] = field(init=False, default=lambda: None)
    _recording: Recording | None = field(init=False, default=None)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Interrupt the body after `max_seconds`, and allow this thread to open the session's files."""
        self._ends = time.monotonic() + self.config.max_seconds
        with allow_only(self.allowed) as self._refused:
            yield

    def stop(self) -> None:
        """Interrupt the running statement and reject later ones."""
        self._stopped = True
        with suppress(apsw.ConnectionClosedError):
            self.connection.interrupt()

    def is_over(self) -> bool:
        """Return whether to stop the statement. SQLite's progress callback."""
        if self._recording is not None:
            self._recording.check()
        return self._stopped or time.monotonic() > self._ends

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Convert exceptions of the body to a cancellation or a typed error."""
        try:
            yield
        except FAILURES as error:
            if self.authorizer.refusal is not None:
                raise self.authorizer.refusal from None
            if is_interrupted(error):
                from_thread.check_cancelled()
                raise SqlTimeout(self.config.max_seconds) from None
            if (path := self._refused()) is not None:
                raise refusal(self.target.name, path) from None
            raise typed_error(error, self.target.name, self.config.busy_seconds) from None

    def select(self, sql: str, params: Bindings) -> SqliteAnswer:
        """Start a statement that returns rows. All statements of a session read the same snapshot."""
        if not self.connection.in_transaction:
            self._enter("BEGIN")
        cursor, check = self._begin(sql, params)
        return SqliteAnswer(check.columns, self, cursor)

    def change(self, sql: str, params: Bindings) -> Changed:
        """Run one statement in the open transaction."""
        before = self.connection.total_changes()
        cursor, check = self._begin(sql, params)
        # read all rows: only then is the change complete, and the count known
        rows = take_all(SqliteAnswer(check.columns, self, cursor), self.config)
        affected = self.connection.changes() if self.connection.total_changes() > before else 0
        rowid = self.connection.last_insert_rowid() if self.authorizer.inserts and affected else None
        return Changed(affected, rowid, check.columns, rows)

    def change_many(self, sql: str, rows: Sequence[Bindings]) -> int:
        """Run one statement for each row in the open transaction."""
        self.authorizer.reset()
        affected, cursor = 0, self.connection.cursor()
        check = StatementCheck(sql, changes=True)
        cursor.exec_trace = check
        with self.failures():
            for row in rows:
                before = self.connection.total_changes()
                for _ in cursor.execute(sql, row):
                    pass
                if check.reads_only:
                    raise SqlSyntax("it changes nothing", hint="use `sql.executemany` for INSERT, UPDATE and DELETE")
                cursor.exec_trace = None
                affected += self.connection.changes() if self.connection.total_changes() > before else 0
        return affected

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Iterator[None]:
        """Commit or roll back the body. The write lock is acquired first, so no later statement can find it held."""
        self._enter("BEGIN IMMEDIATE")
        try:
            yield
            # last chance to roll back the change of a cancelled dispatch
            from_thread.check_cancelled()
            if keep:
                with self.failures(), self.authorizer.trusted():
                    self.when_free(lambda: self.connection.execute("COMMIT"))
        finally:
            # a statement such as INSERT OR ROLLBACK may have ended the transaction
            if self.connection.in_transaction:
                self.connection.set_progress_handler(None)
                # after an interrupt, closing the connection rolls back
                with suppress(apsw.Error), self.authorizer.trusted():
                    self.connection.execute("ROLLBACK")

    def identities(self) -> list[str]:
        """Return what identifies the folder of the database, which is held open, and its file."""
        return identities(self.allowed[0].folder, self.target)

    def watch_changes(self) -> None:
        """Start recording the changes of the transaction."""
        if not self.config.undo_bytes:
            return
        with self.failures(), self.authorizer.trusted():
            self._recording = Recording.begin(self.connection, self.config.undo_bytes)

    def inverse(self) -> Inverse:
        """Return the inverse of the recorded changes."""
        if self._recording is None:
            return Inverse(remains=("undo is disabled: `undo_bytes` is 0",))
        with self.failures(), self.authorizer.trusted():
            return self._recording.inverse(schema=self.authorizer.schema)

    def revert(self, changes: bytes) -> int:
        """Apply an inverse."""
        self.authorizer.reset()
        with self.failures(), self.authorizer.trusted():
            return revert(self.connection, changes, self.target.name)

    def mark(self, effect: str) -> bool:
        """Record the effect if the database is in the host's data folder."""
        if not self.target.managed:
            return False
        with self.failures(), self.authorizer.trusted():
            mark(self.connection, effect)
        return True

    def is_marked(self, effect: str) -> bool | None:
        """Return whether the effect was committed, or ``None`` if it is unknown."""
        if not self.target.managed:
            return None
        self._enter("BEGIN")
        with self.failures(), self.authorizer.trusted():
            return is_marked(self.connection, effect)

    def close(self) -> None:
        """Close the connection."""
        self.resources.close()

    def when_free(self, action: Callable[[], T]) -> T:
        """Run an action that opens files, retrying for `busy_seconds` while another connection holds the lock."""
        deadline = time.monotonic() + self.config.busy_seconds
        while True:
            try:
                with open_close_lock:
                    return action()
            except (apsw.BusyError, apsw.LockedError):
                if time.monotonic() > deadline:
                    raise
            from_thread.check_cancelled()
            time.sleep(_SECONDS_BETWEEN_TRIES)

    def _enter(self, begin: str) -> None:
        """Begin a transaction on all databases, so that none of their files is opened later."""

        def enter() -> None:
            try:
                self.connection.execute(begin)
                for alias in ("main", *self.aliases):
                    self.connection.execute(f'SELECT 1 FROM "{alias}".sqlite_master LIMIT 1').fetchall()  # noqa: S608
            except apsw.Error:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

        with self.failures(), self.authorizer.trusted():
            self.when_free(enter)

    def _begin(self, sql: str, params: Bindings) -> tuple[apsw.Cursor, StatementCheck]:
        self.authorizer.reset()
        if self._stopped:
            from_thread.check_cancelled()
            raise SqlTimeout(self.config.max_seconds)

        check = StatementCheck(sql, changes=self.authorizer.changes)
        cursor = self.connection.cursor()
        cursor.exec_trace = check
        with self.failures():
            return cursor.execute(sql, params), check
