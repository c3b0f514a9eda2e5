"""Values of property lists as plain data: what JSON can carry, and bytes."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from ._errors import PlistSyntax, PlistValue

BYTES, DATE, UID = "__bytes__", "__date__", "CF$UID"
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


def integer_value(number: int) -> int:
    """A whole number, if a property list can have it.

    Raises:
        PlistValue: it has more than 64 bits.
    """
    if not _LEAST <= number <= _MOST:
        raise PlistValue("a whole number has more than 64 bits", hint="such numbers can't be read")
    return number


def real_value(number: float) -> float:
    """A number, if JSON can carry it.

    Raises:
        PlistValue: it is infinite, or not a number.
    """
    if not math.isfinite(number):
        raise PlistValue("a number is infinite or none at all", hint="JSON has no form for it")
    return number


def date_value(moment: datetime, *, typed: bool) -> Any:
    """A moment in UTC as text, ``2001-01-01T00:00:00Z``; ``typed`` says that it is one."""
    text = moment.replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")
    return {DATE: text} if typed else text


def object_value(keys: list[Any], values: list[Any]) -> dict[str, Any]:
    """An object.

    Raises:
        PlistSyntax: a key is no text or stands in it twice; or it can be taken for bytes, which it would become on its
            way to a skill.
    """
    if not all(isinstance(key, str) for key in keys):
        raise PlistSyntax("a key is no text")
    found = dict(zip(keys, values, strict=True))
    if len(found) < len(keys):
        raise PlistSyntax("an object has the same key twice")
    if found.keys() == {BYTES}:
        raise PlistSyntax(f"an object has no key but `{BYTES}`, which stands for bytes here")
    return found
