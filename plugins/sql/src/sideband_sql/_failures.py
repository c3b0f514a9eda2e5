"""From what the sqlite3 module raises to the typed errors of this family."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from ._errors import (
    SqlBusy,
    SqlConstraint,
    SqlCorrupt,
    SqlDenied,
    SqlError,
    SqlMissing,
    SqlReadonly,
    SqlStorage,
    SqlSyntax,
    SqlTooLarge,
    SqlValue,
)

__all__ = ["is_busy", "is_interrupted", "typed_error"]

_LIMITS = (
    "too many",
    "expression tree is too large",
    "parser stack overflow",
    "string or blob too big",
    "like or glob pattern too complex",
)
# the low byte of an extended result code is its primary code
_PRIMARY = 0xFF


def _code(error: Exception) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds a lock."""
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def is_interrupted(error: sqlite3.Error) -> bool:
    """Whether the progress handler stopped the statement."""
    return _code(error) == sqlite3.SQLITE_INTERRUPT


def typed_error(error: Exception, name: str, busy_seconds: float) -> SqlError:
    """The typed error.

    Args:
        error: what the sqlite3 module raised.
        name: the database's name.
        busy_seconds: how long a lock was waited for.
    """
    if isinstance(error, OverflowError):
        return SqlValue(
            "a whole number is outside SQLite's 64 bits", hint="store it as text, or as a real number if that is enough"
        )
    if isinstance(error, UnicodeError):
        return SqlValue("a text is not valid Unicode", hint="store it as bytes")
    text = str(error)
    if (known := _by_text(text)) is not None:
        return known
    by_code = _BY_CODE.get(_code(error))
    return by_code(name, text, busy_seconds) if by_code else SqlSyntax(text)


def _by_text(text: str) -> SqlError | None:
    """What has no result code of its own."""
    if text.startswith("Could not decode to UTF-8"):
        # the message goes on with the value itself
        return SqlValue("a column holds text that is not UTF-8", hint="read it with CAST(column AS BLOB)")
    if text.lower().startswith(_LIMITS):
        return SqlTooLarge(f"a limit of SQLite was reached: {text}")
    if text.startswith("unsafe use of"):
        return SqlDenied(f"{text} in a view or trigger")
    return None


_BY_CODE: dict[int | None, Callable[[str, str, float], SqlError]] = {
    sqlite3.SQLITE_BUSY: lambda name, _, seconds: SqlBusy(name, seconds),
    sqlite3.SQLITE_LOCKED: lambda name, _, seconds: SqlBusy(name, seconds),
    sqlite3.SQLITE_READONLY: lambda _name, text, _: SqlReadonly(text),
    sqlite3.SQLITE_CONSTRAINT: lambda _name, text, _: SqlConstraint(text),
    sqlite3.SQLITE_MISMATCH: lambda _name, text, _: SqlConstraint(text),
    sqlite3.SQLITE_AUTH: lambda _name, text, _: SqlDenied(text),
    sqlite3.SQLITE_TOOBIG: lambda _name, text, _: SqlTooLarge(f"a limit of SQLite was reached: {text}"),
    sqlite3.SQLITE_FULL: lambda name, text, _: SqlStorage(name, text),
    sqlite3.SQLITE_IOERR: lambda name, text, _: SqlStorage(name, text),
    sqlite3.SQLITE_PERM: lambda name, text, _: SqlStorage(name, text),
    sqlite3.SQLITE_NOMEM: lambda name, text, _: SqlStorage(name, text),
    sqlite3.SQLITE_CANTOPEN: lambda name, text, _: SqlMissing(name, problem=f"can't be opened: {text}"),
    sqlite3.SQLITE_NOTADB: lambda name, text, _: SqlCorrupt(name, text),
    sqlite3.SQLITE_CORRUPT: lambda name, text, _: SqlCorrupt(name, text),
}
