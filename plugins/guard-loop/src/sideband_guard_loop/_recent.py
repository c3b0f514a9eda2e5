"""A mapping of bounded size."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A mapping that evicts the least recently written key.

    Args:
        max_size: the maximum number of keys.
    """

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, default: V) -> V:
        """Return the value of a key, or ``default``."""
        return self._values.get(key, default)

    def put(self, key: K, value: V) -> None:
        """Store a value."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._max_size:
            self._values.popitem(last=False)

    def pop(self, key: K, default: V) -> V:
        """Remove a key and return its value, or ``default``."""
        return self._values.pop(key, default)

    def clear(self) -> None:
        """Remove all keys."""
        self._values.clear()
