"""The errors of a statement. Messages name statements, tables and databases, never the value of a parameter.

    OpFailed
    └── SqlError                     sql.failed
        ├── SqlSyntax(ValueError)        sql.syntax      invalid SQL, or an unknown table or column
        ├── SqlValue(ValueError)         sql.value       a value that cannot be stored or returned
        ├── SqlMissing(LookupError)      sql.missing     the database does not exist
        ├── SqlReadonly(PermissionError) sql.readonly    an attempt to change a read-only database
        ├── SqlDenied(PermissionError)   sql.denied      an operation that no grant allows
        ├── SqlConstraint(ValueError)    sql.constraint  a constraint of the schema is violated
        ├── SqlConflict(RuntimeError)    sql.conflict    a change cannot be reverted any more
        ├── SqlReplaced(RuntimeError)    sql.replaced    the path leads to another database than the recorded one
        ├── SqlCursorMissing(LookupError) sql.cursor     the cursor is not open
        ├── SqlDriver(ImportError)       sql.driver      the engine's library is not installed
        ├── SqlEngineOff(PermissionError) sql.engine     the engine is disabled
        ├── SqlBusy(RuntimeError)        sql.busy        the database is locked by another connection
        ├── SqlTooLarge(ValueError)      sql.too_large   a size limit is exceeded
        ├── SqlTimeout(TimeoutError)     sql.timeout     the statement ran too long
        ├── SqlCorrupt(RuntimeError)     sql.corrupt     the file is damaged or not a database
        └── SqlStorage(OSError)          sql.storage     the disk is full, or an I/O error

After any of these errors, nothing was changed.
"""

from __future__ import annotations

from sideband.ops import OpFailed


class SqlError(OpFailed):
    """A statement failed, or its database could not be opened."""

    nothing_happened = True
    code = "sql.failed"


class SqlSyntax(SqlError, ValueError):
    """The statement is not valid SQL, or names an unknown table or column."""

    code = "sql.syntax"

    def __init__(self, problem: str, *, hint: str = "pass one statement; check its names against the schema") -> None:
        super().__init__(f"invalid statement: {problem}", hint=hint)


class SqlValue(SqlError, ValueError):
    """A parameter cannot be stored, or a result cannot be returned."""

    code = "sql.value"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem, hint=hint)


class SqlMissing(SqlError, LookupError):
    """The database does not exist."""

    code = "sql.missing"

    def __init__(self, name: str, *, problem: str = "does not exist") -> None:
        super().__init__(
            f"database `{name}` {problem}",
            hint="create the database with `sql.execute`; for an absolute path, the folder must exist",
        )


class SqlReadonly(SqlError, PermissionError):
    """A change through `sql.query`, on an attached database, or on a file that is not writable."""

    code = "sql.readonly"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"database is read-only: {problem}",
            hint="use `sql.execute`, which changes the database given as `db`; attached databases are always read-only",
        )


class SqlDenied(SqlError, PermissionError):
    """An operation that no grant allows: accessing other files, loading code, weakening SQLite's protection."""

    code = "sql.denied"

    def __init__(self, problem: str, *, hint: str = "rewrite the statement without it; no grant allows it") -> None:
        super().__init__(f"not allowed: {problem}", hint=hint)


class SqlConstraint(SqlError, ValueError):
    """The change violates a constraint of the schema and was rolled back."""

    code = "sql.constraint"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="fix the values that violate the constraint; nothing was changed")


class SqlConflict(SqlError, RuntimeError):
    """Reverting a change would overwrite later changes, so nothing was reverted."""

    code = "sql.conflict"

    def __init__(self, name: str, table: str, problem: str) -> None:
        where = f"`{table}` of `{name}`" if table else f"`{name}`"
        super().__init__(
            f"cannot revert the change of {where}: {problem}",
            hint="undo the later changes first, or edit the rows manually; nothing was changed",
        )


class SqlReplaced(SqlError, RuntimeError):
    """The path leads to another database than the one whose change would be reverted."""

    code = "sql.replaced"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"`{name}` is not the recorded database: {problem}",
            hint="move the recorded database back to its path, or edit the rows manually; nothing was changed",
        )


class SqlCursorMissing(SqlError, LookupError):
    """The cursor is not open, or belongs to another caller."""

    code = "sql.cursor"

    def __init__(self) -> None:
        super().__init__(
            "cursor is not open",
            hint="open a new one; a cursor ends after its last row, on an error, at `sql.close` or with its call",
        )


class SqlDriver(SqlError, ImportError):
    """The library of the database's engine is not installed."""

    code = "sql.driver"

    def __init__(self, engine: str, module: str) -> None:
        super().__init__(
            f"{engine} databases need the package `{module}`, which is not installed",
            hint=f"install `sideband-sql[{engine}]`",
        )


class SqlEngineOff(SqlError, PermissionError):
    """The engine is disabled in the configuration."""

    code = "sql.engine"

    def __init__(self, engine: str) -> None:
        super().__init__(
            f"{engine} databases are disabled",
            hint=f"to accept that a statement can exhaust the host's memory, set `{engine} = true` in `[plugins.sql]`",
        )
        self.nothing_happened = True


class SqlBusy(SqlError, RuntimeError):
    """Another connection held the database's lock for longer than `busy_seconds`."""

    code = "sql.busy"
    retryable = True

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(
            f"database `{name}` was locked by another connection for {seconds:g} s",
            hint="retry, or raise `busy_seconds` in `[plugins.sql]`",
        )


class SqlTooLarge(SqlError, ValueError):
    """A statement, value, result or database exceeds its limit."""

    code = "sql.too_large"

    def __init__(self, problem: str, *, hint: str = "request less, or raise the limit in `[plugins.sql]`") -> None:
        super().__init__(problem, hint=hint)


class SqlTimeout(SqlError, TimeoutError):
    """The statement ran longer than `max_seconds` and was interrupted and rolled back."""

    code = "sql.timeout"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the statement was interrupted after {seconds:g} s",
            hint="add an index or a LIMIT, or raise `max_seconds` in `[plugins.sql]`",
        )


class SqlCorrupt(SqlError, RuntimeError):
    """The file is damaged or not a database."""

    code = "sql.corrupt"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"cannot read `{name}` as a database: {problem}",
            hint="run `PRAGMA integrity_check` for details; restore the file from a backup",
        )


class SqlStorage(SqlError, OSError):
    """The disk is full, or the file cannot be read or written."""

    code = "sql.storage"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"database `{name}`: {problem}", hint="check free disk space and file permissions")


ERRORS = (
    SqlBusy,
    SqlConflict,
    SqlConstraint,
    SqlCorrupt,
    SqlCursorMissing,
    SqlDenied,
    SqlDriver,
    SqlEngineOff,
    SqlError,
    SqlMissing,
    SqlReadonly,
    SqlReplaced,
    SqlStorage,
    SqlSyntax,
    SqlTimeout,
    SqlTooLarge,
    SqlValue,
)
"""The errors that skills can catch by class."""
