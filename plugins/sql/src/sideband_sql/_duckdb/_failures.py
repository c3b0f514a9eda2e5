"""From what `duckdb` raises to the typed errors of this family."""

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

# what a call of the library raises when something is wrong with a statement, its values, or the database
FAILURES = (duckdb.Error, OverflowError, UnicodeError, MemoryError)


def typed_error(error: Exception, name: str, busy_seconds: float) -> SqlError:
    """The typed error.

    Args:
        error: one of ``FAILURES``.
        name: the database's name.
        busy_seconds: how long a lock was waited for.
    """
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
