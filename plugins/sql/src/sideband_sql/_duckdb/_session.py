"""One DuckDB connection, restricted to a few kinds of statements."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import date, datetime
from datetime import time as time_of_day
from typing import Any

import duckdb
from anyio import from_thread
from attrs import define, field
from duckdb import StatementType

from .._config import Config
from .._errors import SqlDenied, SqlReadonly, SqlSyntax, SqlTimeout
from .._limits import take_all
from .._paths import DatabaseTarget
from .._protocols import Bindings, Changed, Inverse
from ._failures import FAILURES, typed_error

_ROWS_AT_ONCE = 256
_INTEGER_LIMIT = 2**63
_READING = frozenset({StatementType.SELECT})
_CHANGING = _READING | {
    StatementType.INSERT,
    StatementType.UPDATE,
    StatementType.DELETE,
    StatementType.MERGE_INTO,
    StatementType.CREATE,
    StatementType.DROP,
    StatementType.ALTER,
}


@define(eq=False)
class DuckdbAnswer:
    """The rows of a running statement.

    Args:
        columns: the column names.
    """

    columns: Sequence[str]
    _session: DuckdbSession
    _connection: duckdb.DuckDBPyConnection

    def __iter__(self) -> Iterator[Sequence[Any]]:
        """Iterate over the remaining rows."""
        while True:
            with self._session.failures():
                rows = self._connection.fetchmany(_ROWS_AT_ONCE)
            if not rows:
                return
            for row in rows:
                yield [_plain(value) for value in row]


@define(eq=False)
class DuckdbSession:
    """An open, confined connection."""

    connection: duckdb.DuckDBPyConnection
    target: DatabaseTarget
    config: Config
    changes: bool
    resources: ExitStack = field(init=False, factory=ExitStack)
    _stopped: bool = field(init=False, default=False)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Interrupt the body after `max_seconds`."""
        timer = threading.Timer(self.config.max_seconds, self.stop)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def stop(self) -> None:
        """Interrupt the running statement and reject later ones."""
        self._stopped = True
        with suppress(duckdb.ConnectionException):
            self.connection.interrupt()

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Convert exceptions of the body to a cancellation or a typed error."""
        try:
            yield
        except duckdb.InterruptException:
            from_thread.check_cancelled()
            raise SqlTimeout(self.config.max_seconds) from None
        except FAILURES as error:
            raise typed_error(error, self.target.name, self.config.busy_seconds) from None

    def select(self, sql: str, params: Bindings) -> DuckdbAnswer:
        """Start a statement that returns rows."""
        return self._begin(sql, params, _READING)

    def change(self, sql: str, params: Bindings) -> Changed:
        """Run one statement in the open transaction."""
        answer = self._begin(sql, params, _CHANGING)
        rows = take_all(answer, self.config)
        if "returning" in sql.lower():
            return Changed(len(rows), None, answer.columns, rows)
        # DuckDB returns a count for changes of rows and no rows for changes of the schema
        counted = list(answer.columns) == ["Count"] and len(rows) == 1
        return Changed(int(rows[0][0]) if counted else 0, None)

    def change_many(self, sql: str, rows: Sequence[Bindings]) -> int:
        """Run one statement for each row in the open transaction."""
        return sum(self.change(sql, row).affected for row in rows)

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Iterator[None]:
        """Commit the body as one transaction, or roll it back."""
        with self.failures():
            self.connection.execute("BEGIN")
        committed = False
        try:
            yield
            from_thread.check_cancelled()
            if keep:
                with self.failures():
                    self.connection.execute("COMMIT")
                committed = True
        finally:
            if not committed:
                # after an interrupt, closing the connection rolls back
                with suppress(duckdb.Error):
                    self.connection.execute("ROLLBACK")

    def identities(self) -> list[str]:
        """Return an empty list: DuckDB does not support undo."""
        return []

    def watch_changes(self) -> None:
        """Do nothing: DuckDB does not record changes."""

    def inverse(self) -> Inverse:
        """Return an inverse which states that the change cannot be undone."""
        return Inverse(remains=("DuckDB does not support undo",))

    def revert(self, changes: bytes) -> int:  # noqa: ARG002  required by the protocol
        """Reject the revert.

        Raises:
            SqlDenied: always.
        """
        raise SqlDenied("reverting a change of a DuckDB database", hint="edit the rows manually")

    def mark(self, effect: str) -> bool:  # noqa: ARG002  required by the protocol
        """Return ``False``: DuckDB databases do not record effects."""
        return False

    def is_marked(self, effect: str) -> bool | None:  # noqa: ARG002  required by the protocol
        """Return ``None``: DuckDB databases do not record effects."""
        return None

    def close(self) -> None:
        """Close the connection."""
        self.resources.close()

    def _begin(self, sql: str, params: Bindings, kinds: frozenset[StatementType]) -> DuckdbAnswer:
        if self._stopped:
            from_thread.check_cancelled()
            raise SqlTimeout(self.config.max_seconds)
        with self.failures():
            statements = self.connection.extract_statements(sql)
            if len(statements) != 1:
                raise SqlSyntax("expected exactly one statement")
            (statement,) = statements
            if statement.type not in kinds:
                kind = str(statement.type).rpartition(".")[2]
                if not self.changes and statement.type in _CHANGING:
                    raise SqlReadonly(f"the statement is {kind}")
                raise SqlDenied(f"{kind} statements", hint="use SELECT, or statements that change rows or the schema")
            connection = self.connection.execute(statement, params)
            return DuckdbAnswer([column[0] for column in connection.description or ()], self, connection)


def _plain(value: Any) -> Any:
    """Convert a value to JSON types or bytes: times to ISO 8601, other types and integers beyond 64 bits to text."""
    match value:
        case None | bool() | float() | str() | bytes():
            return value
        case int():
            return value if -_INTEGER_LIMIT <= value < _INTEGER_LIMIT else str(value)
        case date() | datetime() | time_of_day():
            return value.isoformat()
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
    return str(value)
