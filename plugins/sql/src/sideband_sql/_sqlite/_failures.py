"""From what `apsw` raises to the typed errors of this family."""

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


# what a call of the library raises when something is wrong with a statement, its values, or the database
FAILURES = (apsw.Error, OverflowError, UnicodeError, KeyError, MemoryError)


def _code(error: Exception) -> int | None:
    code: int | None = getattr(error, "result", None)
    return None if code is None else code & _PRIMARY


def is_interrupted(error: Exception) -> bool:
    """Whether the statement was stopped."""
    return _code(error) == apsw.SQLITE_INTERRUPT


def refusal(name: str, path: str) -> SqlDenied:
    """What is said where SQLite was kept from a file.

    Args:
        name: the database's name.
        path: the file.
    """
    return SqlDenied(
        f"`{name}` leads to `{path}`",
        hint="a database and the files beside it are plain files with one name each, of one owner",
    )


def typed_error(error: Exception, name: str, busy_seconds: float) -> SqlError:
    """The typed error.

    Args:
        error: one of ``FAILURES``.
        name: the database's name.
        busy_seconds: how long a lock was waited for.
    """
    if (of_python := _by_class(error)) is not None:
        return of_python
    text = str(error)
    if (known := _by_text(text)) is not None:
        return known
    if isinstance(error, apsw.BindingsError):
        return SqlSyntax(text, hint="give each parameter of the statement its value in `params`, and no more")
    by_code = _BY_CODE.get(_code(error))
    return by_code(name, text, busy_seconds) if by_code else SqlSyntax(text)


def _by_class(error: Exception) -> SqlError | None:
    """What Python itself raises. Messages hold no value, which some of these exceptions carry."""
    match error:
        case OverflowError():
            hint = "store it as text, or as a real number if that is enough"
            return SqlValue("a whole number is outside SQLite's 64 bits", hint=hint)
        case UnicodeDecodeError():
            return SqlValue("a column holds text that is not UTF-8", hint="read it with CAST(column AS BLOB)")
        case UnicodeError():
            return SqlValue("a text is not valid Unicode", hint="store it as bytes")
        case KeyError():
            return SqlSyntax(f"no value is given for `:{error.args[0]}`", hint="name each value in `params`")
        case MemoryError():
            return _memory()
    return None


def _by_text(text: str) -> SqlError | None:
    """What has no result code of its own."""
    if text.lower().startswith(_LIMITS):
        return SqlTooLarge(f"a limit of SQLite was reached: {text}")
    if text.startswith("unsafe use of"):
        return SqlDenied(f"{text} in a view or trigger")
    return None


def _memory() -> SqlError:
    return SqlTooLarge(
        "the statement needs more memory than there is for all statements of the process",
        hint="ask for less at once, or try again; `max_memory_bytes` in `[plugins.sql]` sets the limit",
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
    apsw.SQLITE_TOOBIG: lambda _name, text, _: SqlTooLarge(f"a limit of SQLite was reached: {text}"),
    apsw.SQLITE_FULL: lambda name, text, _: SqlStorage(name, text),
    apsw.SQLITE_IOERR: lambda name, text, _: SqlStorage(name, text),
    apsw.SQLITE_PERM: lambda name, text, _: SqlStorage(name, text),
    apsw.SQLITE_NOMEM: lambda _name, _text, _: _memory(),
    apsw.SQLITE_CANTOPEN: lambda name, text, _: SqlMissing(name, problem=f"can't be opened: {text}"),
    apsw.SQLITE_NOTADB: lambda name, text, _: SqlCorrupt(name, text),
    apsw.SQLITE_CORRUPT: lambda name, text, _: SqlCorrupt(name, text),
}
