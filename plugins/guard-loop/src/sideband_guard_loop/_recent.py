"""A mapping of bounded size."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Forgets what was not put for longest.

    Args:
        most: how many it holds.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, default: V) -> V:
        """What was put last."""
        return self._values.get(key, default)

    def put(self, key: K, value: V) -> None:
        """Hold a value."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)

    def pop(self, key: K, default: V) -> V:
        """Forget a value, and return it."""
        return self._values.pop(key, default)

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
