"""Types of options for ``argparse``."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from datetime import datetime, timedelta

_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def seconds(text: str) -> float:
    """Parse a positive, finite number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not math.isfinite(value) or value <= 0:
        raise ArgumentTypeError(f"expected a positive number of seconds, got `{text}`")
    return value


def count(text: str) -> int:
    """Parse a positive integer."""
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"expected a positive integer, got `{text}`")
    return int(text)


def duration(text: str) -> timedelta:
    """Parse a duration in minutes, hours, days or weeks, such as ``30d``.

    Example:
        >>> duration("12h"), duration("2w")
        (datetime.timedelta(seconds=43200), datetime.timedelta(days=14))
    """
    number, unit = text[:-1], text[-1:]
    try:
        if number.isdecimal() and int(number):
            return int(number) * _UNITS[unit]
    except (KeyError, OverflowError, ValueError):
        pass
    raise ArgumentTypeError(f"expected a duration in m, h, d or w, such as 30d, got `{text}`")


def moment(text: str) -> datetime:
    """Parse a time in ISO 8601; without an offset it is local time."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"expected a time in ISO 8601, such as 2026-01-31 or 2026-01-31T18:30, got `{text}`"
        ) from None
