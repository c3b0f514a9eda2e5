"""Reads JSON that a server or a model wrote: strictly, and without ever raising anything but ``ValueError``."""

from __future__ import annotations

import json
from typing import Any, NoReturn

_DEEPEST = 64


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply to be read.

    Example:
        >>> parse_json("[1, NaN]")
        Traceback (most recent call last):
            ...
        ValueError: NaN is no JSON
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parse_object(text: str, *, halves: bool = False) -> dict[str, Any]:
    """Return the object that a text holds.

    Args:
        text: JSON.
        halves: whether its texts may hold halves of characters, which JSON can escape. They can't be stored or sent.

    Raises:
        ValueError: the text is not a JSON object, is nested deeper than 64 levels, or holds half of a character; the
            message says what it is.

    Example:
        >>> parse_object('{"a": [1, 2]}')
        {'a': [1, 2]}
        >>> parse_object("[1, 2]")
        Traceback (most recent call last):
            ...
        ValueError: it is no JSON object but a list
    """
    value = parse_json(whole_characters(text))
    if not isinstance(value, dict):
        raise ValueError(f"it is no JSON object but {_described(value)}")  # noqa: TRY004  it is a text that is wrong
    _check_depth(value)
    if not halves and "\\u" in text:
        try:
            compact(value).encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half of a character") from None
    return value


def compact(value: Any) -> str:
    """Return a value as short JSON.

    Example:
        >>> compact({"a": [1, "ä"]})
        '{"a":[1,"ä"]}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def whole_characters(text: str) -> str:
    r"""Return ``text`` with halves of characters joined, and replaced where the other half is missing.

    Example:
        >>> whole_characters("\ud83d\ude00 and \ud83d")
        '😀 and �'
    """
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


def _described(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
