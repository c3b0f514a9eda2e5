"""Types of options for ``argparse``."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from datetime import datetime


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


def moment(text: str) -> datetime:
    """Parse a time in ISO 8601; without an offset it is local time."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"expected a time in ISO 8601, such as 2026-01-31 or 2026-01-31T18:30, got `{text}`"
        ) from None
