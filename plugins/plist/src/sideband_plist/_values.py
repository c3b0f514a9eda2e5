"""Values of property lists as plain data: what JSON can carry, and bytes."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from ._errors import PlistSyntax, PlistValue

__all__ = ["BYTES", "DATE", "UID", "check_object", "date_value", "integer_value", "real_value", "uid_value"]

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


def uid_value(number: int) -> dict[str, int]:
    """A reference of a keyed archive, as property lists in XML write it."""
    return {UID: number}


def check_object(found: dict[str, Any]) -> dict[str, Any]:
    """An object, if it can't be taken for bytes: on its way to a skill it would become some.

    Raises:
        PlistSyntax: it looks like bytes.
    """
    if len(found) == 1 and BYTES in found:
        raise PlistSyntax(f"an object has no key but `{BYTES}`, which stands for bytes here")
    return found
