"""Parse and format byte counts with a unit: ``512M``, ``2G``."""

from __future__ import annotations

import re
from typing import Any

_WRITTEN = re.compile(r"(?P<number>[0-9]{1,15})[ ]?(?P<unit>|[KMGT](?:i?B)?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_bytes(value: Any) -> int:
    """Return a number of bytes.

    Args:
        value: an integer, or a string such as ``512M``; units are powers of 1,024.

    Raises:
        ValueError: if the value is neither.

    Example:
        >>> parse_bytes("512M")
        536870912
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError("expected a number of bytes, or a string such as `512M` or `2G`")
    return int(found["number"]) * _UNITS[found["unit"][:1].upper()]


def format_bytes(count: int) -> str:
    """Return the shortest exact notation of a byte count.

    Example:
        >>> format_bytes(3 << 29), format_bytes(1 << 31)
        ('1536M', '2G')
    """
    unit = next((unit for unit, size in reversed(_UNITS.items()) if count >= size and not count % size), "")
    return f"{count // _UNITS[unit]}{unit}"
