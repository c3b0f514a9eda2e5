"""Payloads that no plugin can change behind the back of the others.

A guard that edits a payload in place would change what runs after the guards before it have agreed. So events hold
frozen copies: they compare, print and serialise like plain lists and dicts, and refuse every change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn


class FrozenDict(dict[str, Any]):
    """A dict that refuses changes. ``{**frozen, "key": value}`` makes a changed, plain copy."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        return {key: thaw(value) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that refuses changes. ``[*frozen, value]`` makes a changed, plain copy."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> list[Any]:
        return [thaw(value) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("the payload of an event can't be changed in place; return a changed copy from the hook")


for _kind, _changes in (
    (FrozenDict, "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update"),
    (FrozenList, "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove reverse sort"),
):
    for _change in _changes.split():
        setattr(_kind, _change, _refuse)


def freeze(value: Any) -> Any:
    """A copy of plain data in which no dict and no list can be changed; anything else is returned as it is."""
    kind = type(value)
    if kind is FrozenDict or kind is FrozenList:
        return value
    if isinstance(value, Mapping):
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list):
        return FrozenList([freeze(item) for item in value])
    if kind is tuple:
        return tuple([freeze(item) for item in value])
    return value


def thaw(value: Any) -> Any:
    """A plain copy of a frozen payload, for whoever wants to change much of it."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two payloads are the same data. Unlike ``==``, which holds 1, 1.0 and ``True`` to be equal."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)


def as_tuple(texts: Iterable[str]) -> tuple[str, ...]:
    """A tuple of any texts. ``tuple`` itself says too little to type checkers when it is a converter."""
    return tuple(texts)
