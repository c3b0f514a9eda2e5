"""DuckDB: the second engine behind the same ops.

Its own settings confine it: no access to files or networks, no extensions, limits on memory and threads, and a
configuration that is locked before the first statement. Only statements of a few kinds are run at all.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import date, datetime
from datetime import time as time_of_day
from pathlib import Path
from typing import Any

import duckdb
from anyio import from_thread
from attrs import define, field, frozen
from duckdb import StatementType

from ._config import Config
from ._drivers import Bindings, Changed, Inverse
from ._errors import (
    SqlBusy,
    SqlConstraint,
    SqlCorrupt,
    SqlDenied,
    SqlError,
    SqlReadonly,
    SqlStorage,
    SqlSyntax,
    SqlTimeout,
    SqlTooLarge,
    SqlValue,
)
from ._limits import take_all
from ._paths import Target, check_plain, pinned

__all__ = ["DuckdbDriver"]

_SECONDS_BETWEEN_TRIES = 0.01
_ROWS_AT_ONCE = 256
_LARGEST = 2**63
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "allow_persistent_secrets": "false",
    "temp_directory": "",
    "threads": "2",
}
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
_names = threading.Lock()
_files: dict[Path, threading.Lock] = {}
_BUSY = ("Could not set lock", "different configuration", "Unique file handle conflict", "already attached")


@frozen
class DuckdbDriver:
    """Opens DuckDB databases."""

    def open(self, target: Target, attached: Mapping[str, Target], config: Config, *, changes: bool) -> DuckdbSession:
        """Open the database, attach the others read-only, and lock the configuration.

        Raises:
            SqlError: it can't be opened.
        """
        with ExitStack() as stack:
            targets = {one.file: one for one in (target, *attached.values())}
            for one in sorted(targets):
                stack.enter_context(_alone(targets[one], config))
                stack.enter_context(_unmoved(targets[one]))
            connection = _connect(target, config, changes=changes)
            stack.callback(connection.close)
            session = DuckdbSession(connection, target, config, changes)
            with session.failures():
                for alias, other in attached.items():
                    path = str(other.file).replace("'", "''")
                    connection.execute(f"ATTACH '{path}' AS \"{alias}\" (READ_ONLY)")
                connection.execute("SET enable_external_access = false")
                connection.execute("SET lock_configuration = true")
            session.resources.push(stack.pop_all())
        return session


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
    target: Target
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
        except (duckdb.Error, OverflowError, UnicodeError, MemoryError) as error:
            raise _typed_error(error, self.target.name, self.config.busy_seconds) from None

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


@contextmanager
def _alone(target: Target, config: Config) -> Iterator[None]:
    """One session a file: two in one process would be one instance of the engine, with what either has attached."""
    with _names:
        lock = _files.setdefault(target.file, threading.Lock())
    gives_up = time.monotonic() + config.busy_seconds
    while not lock.acquire(timeout=_SECONDS_BETWEEN_TRIES):
        from_thread.check_cancelled()
        if time.monotonic() > gives_up:
            raise SqlBusy(target.name, config.busy_seconds)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _unmoved(target: Target) -> Iterator[None]:
    """Check the file and the log beside it before and after it is opened: DuckDB opens it by its path."""
    with pinned(target) as (folder, _):
        log = f"{target.file.name}.wal"
        with suppress(FileNotFoundError):
            check_plain(f"{target.name}.wal", os.stat(log, dir_fd=folder, follow_symlinks=False))
        yield
        there = os.stat(target.file.name, dir_fd=folder, follow_symlinks=False)
        named = target.file.lstat()
        if (there.st_dev, there.st_ino) != (named.st_dev, named.st_ino):
            raise SqlDenied(f"`{target.name}` is not where it was", hint="try again once nobody moves it")


def _connect(target: Target, config: Config, *, changes: bool) -> duckdb.DuckDBPyConnection:
    settings: dict[str, str | bool | int | float | list[str]] = {
        **_SETTINGS,
        "memory_limit": f"{config.max_memory_bytes}B",
    }
    gives_up = time.monotonic() + config.busy_seconds
    if changes:
        _begin_file(target)
    while True:
        try:
            return duckdb.connect(str(target.file), read_only=not changes, config=settings)
        except (duckdb.Error, RuntimeError) as error:
            if not any(text in str(error) for text in _BUSY):
                raise _typed_error(error, target.name, config.busy_seconds) from None
            if time.monotonic() > gives_up:
                raise SqlBusy(target.name, config.busy_seconds) from None
        from_thread.check_cancelled()
        time.sleep(_SECONDS_BETWEEN_TRIES)


def _begin_file(target: Target) -> None:
    """Make a database of an empty file, which DuckDB does not do: beside it, then in its place."""
    if target.file.stat().st_size:
        return
    with target.file.open("rb") as empty:
        # another process may be about to do the same
        fcntl.flock(empty, fcntl.LOCK_EX)
        if target.file.stat().st_size:
            return
        beside = target.file.with_name(f".{target.file.name}.{secrets.token_hex(8)}")
        try:
            duckdb.connect(str(beside)).close()
            beside.chmod(0o600)
            beside.replace(target.file)
        finally:
            beside.unlink(missing_ok=True)


def _typed_error(error: Exception, name: str, busy_seconds: float) -> SqlError:
    text = str(error).partition("\n")[0]
    if isinstance(error, duckdb.TransactionException):
        return SqlBusy(name, busy_seconds)
    for kind, part, build in _TYPED:
        if isinstance(error, kind) and part in text:
            return build(name)
    return SqlSyntax(text)


def _value(_name: str) -> SqlError:
    # the engine's own text holds the value
    return SqlValue("a value does not fit where it is put", hint="compare the values with the columns' types")


def _memory(_name: str) -> SqlError:
    return SqlTooLarge("the statement needs more memory than statements may use")


def _damaged(name: str) -> SqlError:
    return SqlCorrupt(name, "it is no file of DuckDB, or a damaged one")


# the kind, what its text holds, and what is said instead
_TYPED: tuple[tuple[type[Exception], str, Callable[[str], SqlError]], ...] = (
    (duckdb.ConstraintException, "", lambda _: SqlConstraint("a constraint refuses the change")),
    (duckdb.PermissionException, "", lambda _: SqlDenied("reaching files or loading extensions")),
    (duckdb.OutOfMemoryException, "", _memory),
    (MemoryError, "", _memory),
    (duckdb.ConversionException, "", _value),
    (duckdb.OutOfRangeException, "", _value),
    (OverflowError, "", _value),
    (UnicodeError, "", _value),
    (duckdb.IOException, "not a valid DuckDB", _damaged),
    (duckdb.IOException, "", lambda name: SqlStorage(name, "it can't be read or written")),
    (duckdb.SerializationException, "", _damaged),
    (duckdb.InternalException, "", _damaged),
    (duckdb.FatalException, "", _damaged),
    (duckdb.InvalidInputException, "read-only", lambda name: SqlReadonly(f"`{name}` is open to be read")),
    (duckdb.InvalidInputException, "has been locked", lambda _: SqlDenied("a change of the configuration")),
)


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
