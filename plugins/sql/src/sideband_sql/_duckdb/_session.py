"""One DuckDB connection. Only statements of a few kinds are run."""

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
_LARGEST = 2**63
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
    """The rows of a statement that runs.

    Args:
        columns: their names.
    """

    columns: Sequence[str]
    _session: DuckdbSession
    _connection: duckdb.DuckDBPyConnection

    def __iter__(self) -> Iterator[Sequence[Any]]:
        """The rows that have not been read yet."""
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
        """The time begins."""
        timer = threading.Timer(self.config.max_seconds, self.stop)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def stop(self) -> None:
        """End what runs, and what would be begun."""
        self._stopped = True
        with suppress(duckdb.ConnectionException):
            self.connection.interrupt()

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Raise what goes wrong inside as cancellation, or as a typed error."""
        try:
            yield
        except duckdb.InterruptException:
            from_thread.check_cancelled()
            raise SqlTimeout(self.config.max_seconds) from None
        except FAILURES as error:
            raise typed_error(error, self.target.name, self.config.busy_seconds) from None

    def select(self, sql: str, params: Bindings) -> DuckdbAnswer:
        """Begin a statement that answers rows."""
        return self._begin(sql, params, _READING)

    def change(self, sql: str, params: Bindings) -> Changed:
        """Run one statement in the open transaction."""
        answer = self._begin(sql, params, _CHANGING)
        rows = take_all(answer, self.config)
        if "returning" in sql.lower():
            return Changed(len(rows), None, answer.columns, rows)
        # a count where rows were changed, nothing where the schema was
        counted = list(answer.columns) == ["Count"] and len(rows) == 1
        return Changed(int(rows[0][0]) if counted else 0, None)

    def change_many(self, sql: str, rows: Sequence[Bindings]) -> int:
        """Run one statement for each row in the open transaction."""
        return sum(self.change(sql, row).affected for row in rows)

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Iterator[None]:
        """All or nothing."""
        with self.failures():
            self.connection.execute("BEGIN")
        kept = False
        try:
            yield
            from_thread.check_cancelled()
            if keep:
                with self.failures():
                    self.connection.execute("COMMIT")
                kept = True
        finally:
            if not kept:
                # if it is interrupted, closing the connection rolls back
                with suppress(duckdb.Error):
                    self.connection.execute("ROLLBACK")

    def watch_changes(self) -> None:
        """It keeps nothing that would tell them."""

    def inverse(self) -> Inverse:
        """That nothing takes a change back."""
        return Inverse(remains=("DuckDB keeps nothing to take a change back",))

    def revert(self, changes: bytes) -> int:
        """It can't.

        Raises:
            SqlDenied: always.
        """
        raise SqlDenied("taking back a change of DuckDB", hint=f"{len(changes)} bytes are of another engine")

    def mark(self, effect: str) -> bool:
        """Nothing is noted."""
        return effect == ""

    def is_marked(self, effect: str) -> bool | None:
        """Nobody knows."""
        return self.mark(effect) or None

    def close(self) -> None:
        """Close it."""
        self.resources.close()

    def _begin(self, sql: str, params: Bindings, kinds: frozenset[StatementType]) -> DuckdbAnswer:
        if self._stopped:
            from_thread.check_cancelled()
            raise SqlTimeout(self.config.max_seconds)
        with self.failures():
            statements = self.connection.extract_statements(sql)
            if len(statements) != 1:
                raise SqlSyntax("it is not one statement")
            (statement,) = statements
            if statement.type not in kinds:
                kind = str(statement.type).rpartition(".")[2]
                if not self.changes and statement.type in _CHANGING:
                    raise SqlReadonly(f"the statement is {kind}")
                raise SqlDenied(f"a statement of the kind {kind}", hint="SELECT, and changes of rows and of the schema")
            connection = self.connection.execute(statement, params)
            return DuckdbAnswer([column[0] for column in connection.description or ()], self, connection)


def _plain(value: Any) -> Any:
    """What JSON can say, or bytes: times as ISO 8601, and what is exact beyond 64 bits as text."""
    match value:
        case None | bool() | float() | str() | bytes():
            return value
        case int():
            return value if -_LARGEST <= value < _LARGEST else str(value)
        case date() | datetime() | time_of_day():
            return value.isoformat()
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
    return str(value)
