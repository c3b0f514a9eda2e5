"""Text for a value, from which its digest is made: equal for equal values, and different for different ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel


def canonical(value: Any) -> str:
    """Return a text for plain data and what parameters consist of besides, such as bytes, sets, secrets and times.

    The order of a mapping or a set does not matter. Lists and tuples are the same, and all other types differ: unlike
    in JSON, ``{1: 2}`` is not ``{"1": 2}``. Which fields of a model were set does not matter, only their values.
    """
    kind = type(value)
    if value is None or kind in (str, bool, float):
        return json.dumps(value)
    # A plugin that a reload has replaced has another name for what still runs, such as `acme@1`.
    package, dot, rest = kind.__module__.partition(".")
    name = f"{package.partition('@')[0]}{dot}{rest}.{kind.__qualname__}"
    parts: Iterable[str]
    if isinstance(value, Mapping):
        name, parts = "map", sorted(f"{canonical(key)}:{canonical(one)}" for key, one in value.items())
    elif isinstance(value, list | tuple):
        name, parts = "list", map(canonical, value)
    elif isinstance(value, set | frozenset):
        name, parts = "set", sorted(map(canonical, value))
    elif isinstance(value, BaseModel):  # its values, and not what it serializes, which may omit some
        parts = [canonical(dict(value))]
    elif isinstance(value, bytes | bytearray):
        parts = [value.hex()]
    elif hasattr(value, "get_secret_value"):
        parts = [canonical(value.get_secret_value())]
    else:  # decimal digits of integers are slow, and refused if there are many
        parts = [f"{value:x}" if kind is int else json.dumps(str(value))]
    return f"{name}({','.join(parts)})"
