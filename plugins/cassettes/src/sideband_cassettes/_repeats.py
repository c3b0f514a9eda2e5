"""Parameters that repeat those of an earlier effect: a conversation is sent with each step, and is written once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SAME, _THEN = "__same__", "__then__"
_LEAST = 200
_MOST_CHARACTERS = 1 << 28


def without_repeats(effects: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the effects, whose long parameters name the effect that has the same value, or the beginning of a list.

    Example:
        >>> call = {"op": "llm.generate", "params": {"messages": ["a" * 300]}}
        >>> again = {"op": "llm.generate", "params": {"messages": ["a" * 300, "b"]}}
        >>> [*without_repeats([call, again])][1]["params"]
        {'messages': {'__same__': 1, '__then__': ['b']}}
    """
    last: dict[tuple[str, str], tuple[int, list[str]]] = {}
    for number, effect in enumerate(effects, 1):
        params = dict(effect["params"])
        for name, value in effect["params"].items():
            at, known = last.get((effect["op"], name), (0, []))
            # As texts, since 1 and true are equal in Python.
            texts = [*map(json.dumps, value)] if isinstance(value, list) else [f"={json.dumps(value)}"]
            if sum(map(len, known)) > _LEAST and texts[: len(known)] == known:
                params[name] = {_SAME: at, **({_THEN: value[len(known) :]} if len(texts) > len(known) else {})}
            last[effect["op"], name] = (number, texts)
        yield {**effect, "params": params}


def with_repeats(effects: Sequence[Any]) -> list[Any]:
    """Return the effects as they were before ``without_repeats``.

    Raises:
        ValueError: if a repeated parameter does not exist, or all of them are too large.
    """
    found: list[Any] = []
    sizes: dict[tuple[int, str], int] = {}
    total = 0
    for number, effect in enumerate(effects, 1):
        params = effect.get("params") if isinstance(effect, dict) else None
        if not isinstance(params, dict):
            found.append(effect)  # reported by the validation
            continue
        whole = dict(params)
        for name, value in params.items():
            size, added = 0, value
            if isinstance(value, dict) and _SAME in value:
                whole[name], size = _repeated(value, name, effect, found, sizes)
                added = value.get(_THEN)
            sizes[number, name] = size = size + len(json.dumps(added))
            total += size
        if total > _MOST_CHARACTERS:
            raise ValueError("its parameters are too large")
        found.append({**effect, "params": whole})
    return found


def _repeated(
    value: Mapping[str, Any], name: str, effect: Mapping[str, Any], found: Sequence[Any], sizes: Mapping[Any, int]
) -> tuple[Any, int]:
    """Return a repeated parameter with what is added to it, and the size of what it repeats."""
    at, added = value[_SAME], value.get(_THEN)
    is_number = type(at) is int and 1 <= at <= len(found)
    earlier = found[at - 1] if is_number else {}
    known = (
        earlier.get("params", {}).get(name) if isinstance(earlier, dict) and earlier.get("op") == effect["op"] else None
    )
    is_added = isinstance(known, list) and isinstance(added, list)
    if known is None or not (value.keys() == {_SAME} or (is_added and value.keys() == {_SAME, _THEN})):
        raise ValueError(f"`{_SAME}` of the parameter `{name[:80]}` names no such effect")
    return (known + added if is_added else known), sizes[at, name]
