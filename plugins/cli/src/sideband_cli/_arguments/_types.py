"""Types of options: what can't be one is an error that says what would be."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from datetime import datetime


def seconds(text: str) -> float:
    """A duration that can be waited for: more than nothing, and not for ever."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not math.isfinite(value) or value <= 0:
        raise ArgumentTypeError(f"`{text}` is no number of seconds above 0")
    return value


def count(text: str) -> int:
    """How many, at least one."""
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"`{text}` is no whole number above 0")
    return int(text)


def moment(text: str) -> datetime:
    """A time in ISO 8601; without a zone it is local time."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"`{text}` is no time in ISO 8601, like 2026-01-31 or 2026-01-31T18:30") from None
