"""Short descriptions of arguments, durations, tokens and costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sideband.rendering import render

from ._columns import fitted

if TYPE_CHECKING:
    from sideband.messages import Usage

_MAX_VALUE_LENGTH = 60


def one_line(text: str) -> str:
    """Render a text and join its lines."""
    return render(" ".join(text.split()), prose=True)


def describe_arguments(arguments: Mapping[str, Any]) -> str:
    """Describe arguments on one line, with long values cut.

    Example:
        >>> describe_arguments({"repo": "pytest-dev/pluggy", "limit": 3})
        'repo=pytest-dev/pluggy limit=3'
    """
    return " ".join(
        f"{fitted(one_line(name), _MAX_VALUE_LENGTH)}={fitted(_value(value), _MAX_VALUE_LENGTH)}"
        for name, value in arguments.items()
    )


def _value(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def describe_duration(seconds: float) -> str:
    """Describe a duration.

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
    """Describe a POSIX timestamp in local time, with the date unless it is today."""
    when = datetime.fromtimestamp(moment).astimezone()
    today = datetime.now().astimezone().date()
    return f"{when:%H:%M:%S}" if when.date() == today else f"{when:%Y-%m-%d %H:%M}"


def describe_tokens(count: int) -> str:
    """Describe a rounded number of tokens.

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
    """Describe an amount of US dollars, with four decimals below $1.

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
    """Describe the tokens and the cost of a usage.

    Example:
        >>> from sideband.messages import Usage
        >>> describe_usage(Usage(input=1200, output=80, cache_read=9000, cost=0.0123))
        '10.2k tokens in (9k cached), 80 out, $0.0123'
    """
    cached = f" ({describe_tokens(usage.cache_read)} cached)" if usage.cache_read else ""
    read = describe_tokens(usage.input + usage.cache_read + usage.cache_write)
    return f"{read} tokens in{cached}, {describe_tokens(usage.output)} out, {describe_usage_cost(usage)}"


def describe_usage_cost(usage: Usage) -> str:
    """Describe the cost of a usage. Without tokens it is 0, even if the prices are unknown."""
    return describe_cost(usage.cost if usage.context else 0)
