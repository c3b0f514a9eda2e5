"""Values of property lists as plain data: JSON types and bytes."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from ._errors import PlistSyntax, PlistValue

BYTES, DATE, UID = "__bytes__", "__date__", "CF$UID"
_MIN_INTEGER, _MAX_INTEGER = -(1 << 63), (1 << 64) - 1


def integer_value(number: int) -> int:
    """Return an integer if property lists support it.

    Raises:
        PlistValue: if it has more than 64 bits.
    """
    if not _MIN_INTEGER <= number <= _MAX_INTEGER:
        raise PlistValue("integer has more than 64 bits", hint="use a smaller number, or text")
    return number


def real_value(number: float) -> float:
    """Return a number if JSON supports it.

    Raises:
        PlistValue: if it is infinite or NaN.
    """
    if not math.isfinite(number):
        raise PlistValue("number is infinite or NaN", hint="use a finite number; JSON does not support others")
    return number


def date_value(moment: datetime, *, typed: bool) -> Any:
    """Return a UTC time as text, ``2001-01-01T00:00:00Z``, or with ``typed`` as an object that marks it as a date."""
    text = moment.replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")
    return {DATE: text} if typed else text


def object_value(keys: list[Any], values: list[Any]) -> dict[str, Any]:
    """Return an object.

    Raises:
        PlistSyntax: if a key is not text or a duplicate, or if the object would be decoded as bytes on its way to a
            skill.
    """
    if not all(isinstance(key, str) for key in keys):
        raise PlistSyntax("key is not text")
    found = dict(zip(keys, values, strict=True))
    if len(found) < len(keys):
        raise PlistSyntax("duplicate key in an object")
    if found.keys() == {BYTES}:
        raise PlistSyntax(f"an object with the single key `{BYTES}` is ambiguous: it represents bytes")
    return found
