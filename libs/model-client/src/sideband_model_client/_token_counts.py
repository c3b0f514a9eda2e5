"""Token counts as model services report them."""

from __future__ import annotations

# The maximum of the counts of `sideband.messages.Usage`.
_MAX_COUNT = 10**15


def token_count(value: object) -> int | None:
    """Return a reported number of tokens, or ``None`` if the value is not a plausible count.

    Args:
        value: the reported value, of any JSON type.

    Example:
        >>> token_count(12), token_count(-1), token_count(True), token_count(10**16)
        (12, None, None, None)
    """
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MAX_COUNT else None
