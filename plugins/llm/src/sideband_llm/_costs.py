"""What a model call costs."""

from __future__ import annotations

from sideband.messages import Usage
from sideband.providers import Prices

__all__ = ["cost_of"]

_MILLION = 1_000_000


def cost_of(usage: Usage, prices: Prices) -> float:
    """US dollars.

    Example:
        >>> cost_of(Usage(input=1_000_000, output=100_000, cache_read=1_000_000), Prices(input=3, output=15))
        7.5
    """
    read = prices.input if prices.cache_read is None else prices.cache_read
    written = prices.input if prices.cache_write is None else prices.cache_write
    return (
        usage.input * prices.input
        + usage.output * prices.output
        + usage.cache_read * read
        + usage.cache_write * written
    ) / _MILLION
