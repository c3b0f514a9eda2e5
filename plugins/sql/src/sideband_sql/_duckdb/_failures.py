"""Map exceptions of `duckdb` to the errors of this family."""

from __future__ import annotations

from collections.abc import Callable

import duckdb

from .._errors import (
    SqlBusy,
    SqlConstraint,
    SqlCorrupt,
    SqlDenied,
    SqlError,
    SqlReadonly,
    SqlStorage,
    SqlSyntax,
    SqlTooLarge,
    SqlValue,
)

# the exceptions that the library raises for a faulty statement, value or database
FAILURES = (duckdb.Error, OverflowError, UnicodeError, MemoryError)


def typed_error(error: Exception, name: str, busy_seconds: float) -> SqlError:
    """Return the error of this family for an exception.

    Args:
        error: one of ``FAILURES``.
        name: the database's name.
        busy_seconds: how long the session waited for a lock.
    """
    text = str(error).partition("\n")[0]
    if isinstance(error, duckdb.TransactionException):
        return SqlBusy(name, busy_seconds)
    for kind, part, build in _TYPED:
        if isinstance(error, kind) and part in text:
            return build(name)
    return SqlSyntax(text)


def _value(_name: str) -> SqlError:
    # the engine's own message contains the value
    return SqlValue("a value does not fit its column or parameter", hint="compare the values with the column types")


def _memory(_name: str) -> SqlError:
    return SqlTooLarge("the statement exceeds the memory limit")


def _damaged(name: str) -> SqlError:
    return SqlCorrupt(name, "the file is damaged or not a DuckDB database")


# exception type, text that its message contains, error to raise
_TYPED: tuple[tuple[type[Exception], str, Callable[[str], SqlError]], ...] = (
    (duckdb.ConstraintException, "", lambda _: SqlConstraint("the change violates a constraint")),
    (duckdb.PermissionException, "", lambda _: SqlDenied("accessing files or loading extensions")),
    (duckdb.OutOfMemoryException, "", _memory),
    (MemoryError, "", _memory),
    (duckdb.ConversionException, "", _value),
    (duckdb.OutOfRangeException, "", _value),
    (OverflowError, "", _value),
    (UnicodeError, "", _value),
    (duckdb.IOException, "not a valid DuckDB", _damaged),
    (duckdb.IOException, "", lambda name: SqlStorage(name, "I/O error")),
    (duckdb.SerializationException, "", _damaged),
    (duckdb.InternalException, "", _damaged),
    (duckdb.FatalException, "", _damaged),
    (duckdb.InvalidInputException, "read-only", lambda name: SqlReadonly(f"`{name}` is opened read-only")),
    (duckdb.InvalidInputException, "has been locked", lambda _: SqlDenied("changing the configuration")),
)
