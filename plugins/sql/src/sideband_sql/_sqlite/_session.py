"""One SQLite connection: opened read-only or for changes, confined, watched, and closed.

A statement is stopped in two ways: SQLite asks now and then whether it should go on, and it is interrupted from
outside. Waiting for another connection's lock is a loop of short tries, so that it can be stopped too.
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
from .._paths import DatabaseTarget
from .._protocols import Bindings, Changed, Inverse
from ._authorizer import Authorizer
from ._changesets import Recording, revert
from ._failures import FAILURES, is_interrupted, refusal, typed_error
from ._marks import is_marked, mark
from ._statement import StatementCheck
from ._system_calls import AllowedDatabase, alone, only

T = TypeVar("T")

_SECONDS_BETWEEN_TRIES = 0.01


@define(eq=False)
class SqliteAnswer:
    """The rows of a statement that runs.

    Args:
        columns: their names.
    """

    columns: Sequence[str]
    _session: SqliteSession
    _cursor: apsw.Cursor

    def __iter__(self) -> Iterator[Sequence[Any]]:
        """The rows that have not been read yet."""
        with self._session.failures():
            # a `with` for each row would cost more than the row; what a consumer raises does not come in here
            yield from self._cursor


@define(eq=False)
class SqliteSession:
    """An open, confined connection.

    Args:
        connection: in autocommit mode; statements of its user can neither begin nor end a transaction.
        target: the database it is for.
        config: the limits.
        authorizer: what its statements may do.
        allowed: the files that it may open.
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
        """The time begins, and this thread may open the session's files."""
        self._ends = time.monotonic() + self.config.max_seconds
        with only(self.allowed) as self._refused:
            yield

    def stop(self) -> None:
        """End what runs, and what would be begun."""
        self._stopped = True
        with suppress(apsw.ConnectionClosedError):
            self.connection.interrupt()

    def is_over(self) -> bool:
        """SQLite's progress callback: whether to stop."""
        if self._recording is not None:
            self._recording.check()
        return self._stopped or time.monotonic() > self._ends

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Raise what goes wrong inside as cancellation, or as a typed error."""
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
        """Begin a statement that answers rows. All statements of a session see the databases as the first did."""
        if not self.connection.in_transaction:
            self._enter("BEGIN")
        cursor, seen = self._begin(sql, params)
        return SqliteAnswer(seen.columns, self, cursor)

    def change(self, sql: str, params: Bindings) -> Changed:
        """Run one statement in the open transaction."""
        before = self.connection.total_changes()
        cursor, seen = self._begin(sql, params)
        # all of them: the change is complete, and can be told, only when the last one was read
        rows = take_all(SqliteAnswer(seen.columns, self, cursor), self.config)
        affected = self.connection.changes() if self.connection.total_changes() > before else 0
        rowid = self.connection.last_insert_rowid() if self.authorizer.inserts and affected else None
        return Changed(affected, rowid, seen.columns, rows)

    def change_many(self, sql: str, rows: Sequence[Bindings]) -> int:
        """Run one statement for each row in the open transaction."""
        self.authorizer.forget()
        affected, cursor = 0, self.connection.cursor()
        seen = StatementCheck(sql, changes=True)
        cursor.exec_trace = seen
        with self.failures():
            for row in rows:
                before = self.connection.total_changes()
                for _ in cursor.execute(sql, row):
                    pass
                if seen.reads_only:
                    raise SqlSyntax("it changes nothing", hint="`sql.executemany` is for INSERT, UPDATE and DELETE")
                cursor.exec_trace = None
                affected += self.connection.changes() if self.connection.total_changes() > before else 0
        return affected

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Iterator[None]:
        """All or nothing: the lock for writing is taken first, so that no later statement can find it taken."""
        self._enter("BEGIN IMMEDIATE")
        try:
            yield
            # past this point a cancelled dispatch would leave its change behind
            from_thread.check_cancelled()
            if keep:
                with self.failures(), self.authorizer.own():
                    self.when_free(lambda: self.connection.execute("COMMIT"))
        finally:
            # a statement may have rolled back by itself (INSERT OR ROLLBACK)
            if self.connection.in_transaction:
                self.connection.set_progress_handler(None)
                # if it is interrupted, closing the connection rolls back
                with suppress(apsw.Error), self.authorizer.own():
                    self.connection.execute("ROLLBACK")

    def watch_changes(self) -> None:
        """Notice what the transaction changes."""
        if not self.config.undo_bytes:
            return
        with self.failures(), self.authorizer.own():
            self._recording = Recording.begin(self.connection, self.config.undo_bytes)

    def inverse(self) -> Inverse:
        """What takes back what was changed."""
        if self._recording is None:
            return Inverse(remains=("nothing was kept to take the change back: `undo_bytes` is 0",))
        with self.failures(), self.authorizer.own():
            return self._recording.inverse(schema=self.authorizer.schema)

    def revert(self, changes: bytes) -> int:
        """Apply what ``inverse`` said."""
        self.authorizer.forget()
        with self.failures(), self.authorizer.own():
            return revert(self.connection, changes, self.target.name)

    def mark(self, effect: str) -> bool:
        """Note that the effect happens, in databases that are the host's own."""
        if not self.target.managed:
            return False
        with self.failures(), self.authorizer.own():
            mark(self.connection, effect)
        return True

    def is_marked(self, effect: str) -> bool | None:
        """Whether the effect happened."""
        if not self.target.managed:
            return None
        self._enter("BEGIN")
        with self.failures(), self.authorizer.own():
            return is_marked(self.connection, effect)

    def close(self) -> None:
        """Close it."""
        self.resources.close()

    def when_free(self, action: Callable[[], T]) -> T:
        """Do what opens files, as soon as no other connection is in the way, for as long as the configuration waits."""
        gives_up = time.monotonic() + self.config.busy_seconds
        while True:
            try:
                with alone:
                    return action()
            except (apsw.BusyError, apsw.LockedError):
                if time.monotonic() > gives_up:
                    raise
            from_thread.check_cancelled()
            time.sleep(_SECONDS_BETWEEN_TRIES)

    def _enter(self, begin: str) -> None:
        """Begin a transaction on all databases, so that no file of theirs is opened later."""

        def enter() -> None:
            try:
                self.connection.execute(begin)
                for alias in ("main", *self.aliases):
                    self.connection.execute(f'SELECT 1 FROM "{alias}".sqlite_master LIMIT 1').fetchall()  # noqa: S608
            except apsw.Error:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

        with self.failures(), self.authorizer.own():
            self.when_free(enter)

    def _begin(self, sql: str, params: Bindings) -> tuple[apsw.Cursor, StatementCheck]:
        self.authorizer.forget()
        if self._stopped:
            from_thread.check_cancelled()
            raise SqlTimeout(self.config.max_seconds)

        seen = StatementCheck(sql, changes=self.authorizer.changes)
        cursor = self.connection.cursor()
        cursor.exec_trace = seen
        with self.failures():
            return cursor.execute(sql, params), seen
