"""How calls, costs and ends of a run are told in few words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ._clean import clean
from ._tables import terminal_width

if TYPE_CHECKING:
    from sideband.messages import Usage

_LONGEST_VALUE = 60


def one_line(text: str) -> str:
    """Text without line breaks and control characters."""
    return " ".join(clean(text).split())


def fitted(text: str, width: int | None = None) -> str:
    """One line, cut to a width; that of the terminal if none is given.

    Example:
        >>> fitted("one two", 5)
        'one …'
    """
    room = width or max(1, terminal_width() - 1)  # a line that is full to its end is followed by an empty one on some
    return text if len(text) <= room else text[: room - 1] + "…"


def describe_arguments(arguments: Mapping[str, Any]) -> str:
    """Arguments on one line, each cut where it gets long.

    Example:
        >>> describe_arguments({"repo": "pytest-dev/pluggy", "limit": 3})
        'repo=pytest-dev/pluggy limit=3'
    """
    return " ".join(f"{name}={fitted(_value(value), _LONGEST_VALUE)}" for name, value in arguments.items())


def _value(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def describe_duration(seconds: float) -> str:
    """A time as people say it.

    Example:
        >>> describe_duration(0.31), describe_duration(4), describe_duration(75), describe_duration(7_320)
        ('0.3 s', '4 s', '1 min 15 s', '2 h 2 min')
    """
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"


def describe_moment(moment: float) -> str:
    """A time of the system's clock, as local time; the day only if it is another one."""
    when = datetime.fromtimestamp(moment).astimezone()
    today = datetime.now().astimezone().date()
    return f"{when:%H:%M:%S}" if when.date() == today else f"{when:%Y-%m-%d %H:%M}"


def describe_tokens(count: int) -> str:
    """How many tokens, rounded.

    Example:
        >>> describe_tokens(950), describe_tokens(12_345), describe_tokens(200_000), describe_tokens(1_048_576)
        ('950', '12.3k', '200k', '1.05M')
    """
    if count < 1_000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1_000:.3g}k" if count < 999_500 else "1M"
    return f"{count / 1_000_000:.3g}M"


def describe_cost(cost: float | None) -> str:
    """US dollars, with the digits that matter.

    Example:
        >>> describe_cost(0.01234), describe_cost(3.5), describe_cost(0), describe_cost(None)
        ('$0.0123', '$3.50', '$0', 'cost unknown')
    """
    if cost is None:
        return "cost unknown"
    if cost == 0:
        return "$0"
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


def describe_usage(usage: Usage) -> str:
    """Tokens and cost.

    Example:
        >>> from sideband.messages import Usage
        >>> describe_usage(Usage(input=1200, output=80, cache_read=9000, cost=0.0123))
        '10.2k tokens in (9k cached), 80 out, $0.0123'
    """
    cached = f" ({describe_tokens(usage.cache_read)} cached)" if usage.cache_read else ""
    read = describe_tokens(usage.input + usage.cache_read + usage.cache_write)
    return f"{read} tokens in{cached}, {describe_tokens(usage.output)} out, {describe_usage_cost(usage)}"


def describe_usage_cost(usage: Usage) -> str:
    """What it cost; what nobody has used costs nothing, whatever the prices."""
    return describe_cost(usage.cost if usage.context else 0)
