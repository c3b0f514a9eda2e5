"""Differences between JSON values, represented as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any


def differences(base: Any, wanted: Any) -> list[dict[str, Any]]:
    """Return the changes that turn ``base`` into ``wanted``.

    Example:
        >>> differences({"a": [1, 2]}, {"a": [1, 3], "b": None})
        [{'at': ['a', 1], 'to': 3}, {'at': ['b'], 'to': None}]
    """
    return list(_changes(base, wanted, []))


def apply(base: Any, changes: Any) -> Any:
    """Return ``base`` with these changes. Changes that do not match its structure are ignored.

    Example:
        >>> apply({"a": [1, 2]}, [{"at": ["a", 1], "to": 3}, {"at": ["b"], "to": None}])
        {'a': [1, 3], 'b': None}
    """
    root = [deepcopy(base)]
    for change in changes if isinstance(changes, list) else ():
        if isinstance(change, dict) and isinstance(at := change.get("at"), list):
            _change(root, [0, *at], change)
    return root[0]


def _changes(base: Any, wanted: Any, at: list[str | int]) -> Iterable[dict[str, Any]]:
    if isinstance(base, dict) and isinstance(wanted, dict):
        yield from ({"at": [*at, name]} for name in base if name not in wanted)
        for name, value in wanted.items():
            if name in base:
                yield from _changes(base[name], value, [*at, name])
            else:
                yield {"at": [*at, name], "to": value}
    elif isinstance(base, list) and isinstance(wanted, list) and len(base) == len(wanted):
        for index, (old, new) in enumerate(zip(base, wanted, strict=True)):
            yield from _changes(old, new, [*at, index])
    # 1, 1.0 and True are equal in Python, but not in JSON.
    elif type(base) is not type(wanted) or base != wanted:
        yield {"at": at, "to": wanted}


def _change(root: list[Any], at: list[Any], change: dict[str, Any]) -> None:
    *way, last = at
    place: Any = root
    try:
        for step in way:
            place = place[step]
        if "to" in change:
            place[last] = deepcopy(change["to"])
        elif isinstance(place, dict):
            place.pop(last, None)
    except (LookupError, TypeError):
        return
