"""Values that a caller may send, however wrong they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_DEEP: Any = 1
for _ in range(60):
    _DEEP = [_DEEP]

WRONG: tuple[Any, ...] = (
    None, True, -1, 10**30, 1e308, float("nan"), "", "\ud800", "\x00", "x" * 20_000, "../../etc/passwd",
    [], {}, [None], {"": None}, _DEEP, b"\xff",
)  # fmt: skip
"""Values of all types of JSON, and at its limits."""


def wrong_params(fields: Mapping[str, Any], valid: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield parameters of which one is probably wrong.

    Args:
        fields: the names of the parameters.
        valid: valid parameters, if any are known.
    """
    for name in fields:
        yield {key: value for key, value in valid.items() if key != name}
        for value in WRONG:
            yield {**valid, name: value}
