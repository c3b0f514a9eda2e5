"""What a statement can fail with. Messages name statements, tables and databases, never the value of a parameter.

    OpFailed
    └── SqlError                     sql.failed
        ├── SqlSyntax(ValueError)        sql.syntax      SQLite does not understand it
        ├── SqlValue(ValueError)         sql.value       a value that can't be stored or answered
        ├── SqlMissing(LookupError)      sql.missing     there is no such database
        ├── SqlReadonly(PermissionError) sql.readonly    a change where only reading is possible
        ├── SqlDenied(PermissionError)   sql.denied      what no statement may do
        ├── SqlConstraint(ValueError)    sql.constraint  the schema's own rules refuse it
        ├── SqlConflict(RuntimeError)    sql.conflict    a change that can't be taken back any more
        ├── SqlCursorMissing(LookupError) sql.cursor     there is no such cursor
        ├── SqlDriver(ImportError)       sql.driver      the engine's library is not installed
        ├── SqlEngineOff(PermissionError) sql.engine     the engine is not switched on
        ├── SqlBusy(RuntimeError)        sql.busy        another connection holds the database
        ├── SqlTooLarge(ValueError)      sql.too_large   a limit on size
        ├── SqlTimeout(TimeoutError)     sql.timeout     the statement ran too long
        ├── SqlCorrupt(RuntimeError)     sql.corrupt     the file is no database, or a damaged one
        └── SqlStorage(OSError)          sql.storage     the disk is full, or can't be read or written

After any of them nothing was changed.
"""

from __future__ import annotations

from sideband.ops import OpFailed


class SqlError(OpFailed):
    """A statement failed, or its database could not be opened."""

    nothing_happened = True
    code = "sql.failed"


class SqlSyntax(SqlError, ValueError):
    """SQLite does not understand the statement, or it names a table or column that is not there."""

    code = "sql.syntax"

    def __init__(self, problem: str, *, hint: str = "one statement a call; compare the names with the schema") -> None:
        super().__init__(f"the statement can't be run: {problem}", hint=hint)


class SqlValue(SqlError, ValueError):
    """A parameter that SQLite can't store, or a result that can't be answered."""

    code = "sql.value"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem, hint=hint)


class SqlMissing(SqlError, LookupError):
    """There is no database at that place."""

    code = "sql.missing"

    def __init__(self, name: str, *, problem: str = "does not exist") -> None:
        super().__init__(
            f"the database `{name}` {problem}",
            hint="`sql.execute` creates a database at its first use; an absolute path needs an existing folder",
        )


class SqlReadonly(SqlError, PermissionError):
    """A change was tried through `sql.query`, on an attached database, or on a file that can't be written."""

    code = "sql.readonly"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"nothing can be changed here: {problem}",
            hint="`sql.execute` changes the database given as `db`; attached ones are always read-only",
        )


class SqlDenied(SqlError, PermissionError):
    """What no statement may do, whatever the grant: reach other files, load code, change how SQLite protects itself."""

    code = "sql.denied"

    def __init__(self, problem: str, *, hint: str = "no grant allows it; do without it") -> None:
        super().__init__(f"this is never allowed: {problem}", hint=hint)


class SqlConstraint(SqlError, ValueError):
    """A constraint of the schema refused the change; nothing of it remains."""

    code = "sql.constraint"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="nothing was changed; look at the constraint that the message names")


class SqlConflict(SqlError, RuntimeError):
    """Taking a change back would overwrite what was done since, so nothing of it was taken back."""

    code = "sql.conflict"

    def __init__(self, name: str, table: str, problem: str) -> None:
        where = f"`{table}` of `{name}`" if table else f"`{name}`"
        super().__init__(
            f"the change of {where} can't be taken back: {problem}",
            hint="nothing was changed; take back what came later first, or change the rows by hand",
        )


class SqlCursorMissing(SqlError, LookupError):
    """There is no open cursor of that id, or it is somebody else's."""

    code = "sql.cursor"

    def __init__(self) -> None:
        super().__init__(
            "there is no such cursor",
            hint="it ends with its last row, with an error, with `sql.close`, and with the call that opened it",
        )


class SqlDriver(SqlError, ImportError):
    """The library of the database's engine is not installed."""

    code = "sql.driver"

    def __init__(self, engine: str, module: str) -> None:
        super().__init__(
            f"databases of {engine} need the package `{module}`, which is not installed",
            hint=f"install `sideband-sql[{engine}]`",
        )


class SqlEngineOff(SqlError, PermissionError):
    """The configuration does not allow databases of this engine."""

    code = "sql.engine"

    def __init__(self, engine: str) -> None:
        super().__init__(
            f"databases of {engine} are not switched on",
            hint=f"write `{engine} = true` under `[plugins.sql]`, if whoever queries them may use all memory there is",
        )
        self.nothing_happened = True


class SqlBusy(SqlError, RuntimeError):
    """Another connection held the database for longer than the configured time."""

    code = "sql.busy"
    retryable = True

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(
            f"the database `{name}` was locked by somebody else for {seconds:g} s",
            hint="try again; `busy_seconds` in `[plugins.sql]` sets how long to wait",
        )


class SqlTooLarge(SqlError, ValueError):
    """A statement, value, result or database is over its limit."""

    code = "sql.too_large"

    def __init__(self, problem: str, *, hint: str = "ask for less at once; `[plugins.sql]` sets the limits") -> None:
        super().__init__(problem, hint=hint)


class SqlTimeout(SqlError, TimeoutError):
    """The statement ran longer than the configured time and was interrupted; nothing of it remains."""

    code = "sql.timeout"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the statement did not end within {seconds:g} s and was interrupted",
            hint="add an index or a LIMIT; `max_seconds` in `[plugins.sql]` sets the time",
        )


class SqlCorrupt(SqlError, RuntimeError):
    """The file is no SQLite database, or a damaged one."""

    code = "sql.corrupt"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"`{name}` can't be read as a database: {problem}",
            hint="`PRAGMA integrity_check` tells more; restore the file from a copy",
        )


class SqlStorage(SqlError, OSError):
    """The disk is full, or the file can't be read or written."""

    code = "sql.storage"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"the database `{name}`: {problem}", hint="look at free space and permissions")
