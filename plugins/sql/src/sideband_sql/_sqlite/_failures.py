"""Map exceptions of `apsw` to the errors of this family."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from .._errors import (
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

_LIMITS = (
    "too many",
    "expression tree is too large",
    "parser stack overflow",
    "string or blob too big",
    "like or glob pattern too complex",
)
# the low byte of an extended result code is its primary code
_PRIMARY = 0xFF


# the exceptions that the library raises for a faulty statement, value or database
FAILURES = (apsw.Error, OverflowError, UnicodeError, KeyError, MemoryError)


def _code(error: Exception) -> int | None:
    code: int | None = getattr(error, "result", None)
    return None if code is None else code & _PRIMARY


def is_interrupted(error: Exception) -> bool:
    """Return whether the statement was interrupted."""
    return _code(error) == apsw.SQLITE_INTERRUPT


def refusal(name: str, path: str) -> SqlDenied:
    """Return the error for a file that SQLite was not allowed to open.

    Args:
        name: the database's name.
        path: the file.
    """
    return SqlDenied(
        f"`{name}` refers to `{path}`",
        hint="use regular files without other hard links, all of one owner, for the database and its journals",
    )


def typed_error(error: Exception, name: str, busy_seconds: float) -> SqlError:
    """Return the error of this family for an exception.

    Args:
        error: one of ``FAILURES``.
        name: the database's name.
        busy_seconds: how long the session waited for a lock.
    """
    if (by_class := _by_class(error)) is not None:
        return by_class
    text = str(error)
    if (known := _by_text(text)) is not None:
        return known
    if isinstance(error, apsw.BindingsError):
        return SqlSyntax(text, hint="pass exactly one value in `params` for each parameter of the statement")
    by_code = _BY_CODE.get(_code(error))
    return by_code(name, text, busy_seconds) if by_code else SqlSyntax(text)


def _by_class(error: Exception) -> SqlError | None:
    """Map an exception of Python itself. The message omits the value that some of these exceptions contain."""
    match error:
        case OverflowError():
            hint = "store it as text, or as a real number if its precision is sufficient"
            return SqlValue("an integer exceeds SQLite's 64 bits", hint=hint)
        case UnicodeDecodeError():
            return SqlValue("a column contains text that is not UTF-8", hint="read it with CAST(column AS BLOB)")
        case UnicodeError():
            return SqlValue("a string is not valid Unicode", hint="store it as bytes")
        case KeyError():
            return SqlSyntax(f"missing value for `:{error.args[0]}`", hint="add it to `params`")
        case MemoryError():
            return _memory()
    return None


def _by_text(text: str) -> SqlError | None:
    """Map a message that has no specific result code."""
    if text.lower().startswith(_LIMITS):
        return SqlTooLarge(f"SQLite limit exceeded: {text}")
    if text.startswith("unsafe use of"):
        return SqlDenied(f"{text} in a view or trigger")
    return None


def _memory() -> SqlError:
    return SqlTooLarge(
        "the statement exceeds the memory limit of all statements of the process",
        hint="request less, retry, or raise `max_memory_bytes` in `[plugins.sql]`",
    )


def _readonly(name: str, text: str, _seconds: float) -> SqlError:
    return SqlReadonly(f"`{name}`: {text}")


_BY_CODE: dict[int | None, Callable[[str, str, float], SqlError]] = {
    apsw.SQLITE_BUSY: lambda name, _, seconds: SqlBusy(name, seconds),
    apsw.SQLITE_LOCKED: lambda name, _, seconds: SqlBusy(name, seconds),
    apsw.SQLITE_READONLY: _readonly,
    apsw.SQLITE_CONSTRAINT: lambda _name, text, _: SqlConstraint(text),
    apsw.SQLITE_MISMATCH: lambda _name, text, _: SqlConstraint(text),
    apsw.SQLITE_AUTH: lambda _name, text, _: SqlDenied(text),
    apsw.SQLITE_TOOBIG: lambda _name, text, _: SqlTooLarge(f"SQLite limit exceeded: {text}"),
    apsw.SQLITE_FULL: lambda name, text, _: SqlStorage(name, text),
    apsw.SQLITE_IOERR: lambda name, text, _: SqlStorage(name, text),
    apsw.SQLITE_PERM: lambda name, text, _: SqlStorage(name, text),
    apsw.SQLITE_NOMEM: lambda _name, _text, _: _memory(),
    apsw.SQLITE_CANTOPEN: lambda name, text, _: SqlMissing(name, problem=f"cannot be opened: {text}"),
    apsw.SQLITE_NOTADB: lambda name, text, _: SqlCorrupt(name, text),
    apsw.SQLITE_CORRUPT: lambda name, text, _: SqlCorrupt(name, text),
}
