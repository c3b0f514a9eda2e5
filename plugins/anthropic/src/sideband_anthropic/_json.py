"""Reads JSON that a server or a model wrote, without ever raising something else than ``ValueError``."""

from __future__ import annotations

import json
from typing import Any, NoReturn

__all__ = ["compact", "parse_object", "whole_characters"]

_DEEPEST = 64


def parse_object(text: str, *, halves: bool = False) -> dict[str, Any]:
    """The object that a text holds.

    Args:
        text: JSON.
        halves: whether its texts may hold halves of characters, which JSON can escape.

    Raises:
        ValueError: it is no JSON object, is nested deeper than 64 levels, or holds half of a character.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004  one error for all that a text can be
    _check_depth(value)
    if not halves and "\\u" in text:
        try:
            compact(value).encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half of a character") from None
    return value


def compact(value: Any) -> str:
    """A value as short JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def whole_characters(text: str) -> str:
    """``text`` with halves of characters joined, and replaced where the other half is missing."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        containers = [one for one in level if isinstance(one, dict | list)]
        if not containers:
            return
        level = [item for one in containers for item in (one.values() if isinstance(one, dict) else one)]
    if any(isinstance(one, dict | list) for one in level):
        raise ValueError(f"it is nested deeper than {_DEEPEST} levels")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
