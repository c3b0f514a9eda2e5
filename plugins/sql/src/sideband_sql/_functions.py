"""Functions of SQLite whose time grows with the product of two arguments, in a form that doesn't.

SQLite can be interrupted between the steps of a statement, never inside one function, and `trim`, `instr` and
`replace` compare each position of one argument with all of the other: two values of some megabytes keep a thread busy
for hours. Those here answer the same and take time that grows with the sum.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

__all__ = ["install"]

_Value = None | float | str | bytes
_MAX_TRIMMED = 100


def install(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Put them in the place of SQLite's own.

    Args:
        connection: the connection that gets them.
        max_bytes: the longest text that `replace` may build.
    """

    def replace(text: _Value, old: _Value, new: _Value) -> _Value:
        return _replace(text, old, new, max_bytes)

    connection.create_function("instr", 2, _instr, deterministic=True)
    connection.create_function("replace", 3, replace, deterministic=True)
    for name, strip in (("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
        trim = _trim(strip)
        connection.create_function(name, 1, trim, deterministic=True)
        connection.create_function(name, 2, trim, deterministic=True)


def _text(value: float | str | bytes) -> str:
    """The value as SQLite casts it to text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, int):
        return str(value)
    digits, exponent, power = f"{value:.15g}".partition("e")
    return (digits if "." in digits or "inf" in digits else f"{digits}.0") + exponent + power


def _instr(text: _Value, part: _Value) -> int | None:
    if text is None or part is None:
        return None
    if isinstance(text, bytes) and isinstance(part, bytes):
        return text.find(part) + 1
    return _text(text).find(_text(part)) + 1


def _replace(text: _Value, old: _Value, new: _Value, max_bytes: int) -> _Value:
    if text is None or old is None:
        return None
    if old in ("", b""):
        return text
    if new is None:
        return None
    whole, part, instead = _text(text), _text(old), _text(new)
    # before it is built: afterwards the memory is gone already
    if len(whole) + whole.count(part) * (len(instead) - len(part)) > max_bytes:
        raise ValueError("the result of replace() is too long")
    return whole.replace(part, instead)


def _trim(strip: Callable[[str, str], str]) -> Callable[..., str | None]:
    def trim(text: _Value, characters: _Value = " ") -> str | None:
        if text is None or characters is None:
            return None
        distinct = set(_text(characters))
        if len(distinct) > _MAX_TRIMMED:
            raise ValueError(f"trim() with more than {_MAX_TRIMMED} different characters")
        return strip(_text(text), "".join(distinct)) if distinct else _text(text)

    return trim
