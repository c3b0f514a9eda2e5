"""How large a value is, as far as that decides where it is worked on."""

from __future__ import annotations

from typing import Any

__all__ = ["is_large"]

_LARGE = 65_536
_NODE = 16


def is_large(value: Any) -> bool:
    """Whether it takes long to make a frame of it: it has long texts, or many values."""
    room = _LARGE
    waiting = [value]
    while waiting and room >= 0:
        item = waiting.pop()
        room -= _NODE
        if isinstance(item, (str, bytes, bytearray, memoryview)):
            room -= len(item)
        elif isinstance(item, (dict, list, tuple)):
            room -= _NODE * len(item)
            if room >= 0:
                waiting += item.values() if isinstance(item, dict) else item
    return room < 0
