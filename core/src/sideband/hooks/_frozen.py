"""Immutable copies of event payloads.

A guard that modified a payload in place would change arguments that earlier guards have already approved. So events
hold frozen copies, which compare, print and serialize like plain lists and dicts, but reject every change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn


class FrozenDict(dict[str, Any]):
    """An immutable dict. ``{**frozen, "key": value}`` makes a plain, modified copy."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        return {key: thaw(value) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """An immutable list. ``[*frozen, value]`` makes a plain, modified copy."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> list[Any]:
        return [thaw(value) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("the payload of an event is immutable; return a modified copy from the hook")


for _kind, _changes in (
    (FrozenDict, "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update"),
    (FrozenList, "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove reverse sort"),
):
    for _change in _changes.split():
        setattr(_kind, _change, _refuse)


def freeze(value: Any) -> Any:
    """Return an immutable copy of plain data. Objects other than dicts, lists and tuples are returned unchanged."""
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
    """Return a plain, mutable copy of a frozen payload."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    return value


def same(one: Any, other: Any) -> bool:
    """Return whether two payloads are equal in value and type. ``==`` treats 1, 1.0 and ``True`` as equal."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)


def as_tuple(texts: Iterable[str]) -> tuple[str, ...]:
    """Return a tuple of the texts. Type checkers infer too little if ``tuple`` itself is used as a converter."""
    return tuple(texts)
