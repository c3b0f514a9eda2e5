"""Replacements for SQLite functions whose running time grows with the product of two arguments.

SQLite can be interrupted between the steps of a statement, but not inside a function. Its `trim`, `unhex`, `instr` and
`replace` compare each position of one argument with all of the other, so two values of some megabytes keep a thread
busy for hours. The functions of this module return the same results in time that grows with the sum.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import apsw

from .._errors import SqlTooLarge

_Value = None | float | str | bytes
_MAX_DISTINCT = 100
_HEXADECIMAL = set("0123456789abcdefABCDEF")


def install(connection: apsw.Connection, max_bytes: int) -> None:
    """Replace SQLite's own functions.

    Args:
        connection: the connection to modify.
        max_bytes: the longest text that `replace` may build.
    """

    def replace(text: _Value, old: _Value, new: _Value) -> _Value:
        return _replace(text, old, new, max_bytes)

    def put(name: str, function: Callable[..., Any], *counts: int) -> None:
        for count in counts:
            # these functions have no side effects, so even an untrusted schema may call them
            connection.create_scalar_function(name, function, count, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)

    put("instr", _instr, 2)
    put("replace", replace, 3)
    put("unhex", _unhex, 2)
    for name, strip in (("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
        put(name, _trim(strip), 1, 2)


def _text(value: float | str | bytes) -> str:
    """Return the value as SQLite casts it to text."""
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
        return _text(text)
    if new is None:
        return None
    whole, part, instead = _text(text), _text(old), _text(new)
    # check before building: afterwards the memory is already allocated
    if len(whole) + whole.count(part) * (len(instead) - len(part)) > max_bytes:
        raise SqlTooLarge("the result of replace() exceeds the limit on values")
    return whole.replace(part, instead)


def _distinct(function: str, characters: float | str | bytes) -> set[str]:
    distinct = set(_text(characters))
    if len(distinct) > _MAX_DISTINCT:
        raise SqlTooLarge(f"{function}() supports at most {_MAX_DISTINCT} different characters")
    return distinct


def _unhex(text: _Value, ignored: _Value) -> bytes | None:
    if text is None or ignored is None:
        return None
    digits = _text(text)
    # ignored characters may occur between bytes, but not between the two digits of a byte
    between = "".join(sorted(_distinct("unhex", ignored) - _HEXADECIMAL))
    some = f"[{re.escape(between)}]*" if between else ""
    if not re.fullmatch(f"{some}(?:[0-9A-Fa-f]{{2}}{some})*", digits):
        return None
    return bytes.fromhex(digits.translate(dict.fromkeys(map(ord, between))))


def _trim(strip: Callable[[str, str], str]) -> Callable[..., str | None]:
    def trim(text: _Value, characters: _Value = " ") -> str | None:
        if text is None or characters is None:
            return None
        distinct = _distinct("trim", characters)
        return strip(_text(text), "".join(distinct)) if distinct else _text(text)

    return trim
