"""JSON that is sent, and strict parsing of JSON from servers and models: invalid input raises ``ValueError``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from sideband.messages import Fragment, JsonPieces

_MAX_DEPTH = 64


def parse_json(text: str) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: if the text is not valid JSON, or is nested too deeply for the parser.

    Example:
        >>> parse_json("[1, NaN]")
        Traceback (most recent call last):
            ...
        ValueError: NaN is not valid JSON
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_object(text: str, *, halves: bool = False) -> dict[str, Any]:
    """Parse a JSON object.

    Args:
        text: the JSON text.
        halves: whether to accept escaped unpaired surrogates, which cannot be stored or sent.

    Raises:
        ValueError: if the text is not a JSON object, is nested deeper than 64 levels, or contains an unpaired
            surrogate.

    Example:
        >>> parse_object('{"a": [1, 2]}')
        {'a': [1, 2]}
        >>> parse_object("[1, 2]")
        Traceback (most recent call last):
            ...
        ValueError: expected a JSON object, got a list
    """
    value = parse_json(whole_characters(text))
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {_described(value)}")  # noqa: TRY004  the input is a text
    _check_depth(value)
    if not halves and "\\u" in text:
        try:
            compact(value).encode()
        except UnicodeEncodeError:
            raise ValueError("contains an unpaired surrogate") from None
    return value


def compact(value: Any) -> str:
    """Return a value as JSON without whitespace between tokens.

    Example:
        >>> compact({"a": [1, "ä"]})
        '{"a":[1,"ä"]}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encoded(value: Any) -> bytes:
    r"""Return a value as it is sent: as JSON in UTF-8, with unpaired surrogates replaced.

    Example:
        >>> encoded({"a": "\ud83d"})
        b'{"a":"\xef\xbf\xbd"}'
    """
    return whole_characters(compact(value)).encode()


def json_pieces(fields: Mapping[str, Any], **arrays: Sequence[Fragment]) -> JsonPieces:
    """Return a JSON object with further fields, which are arrays of fragments.

    Args:
        fields: the other fields.
        arrays: the arrays by name. One that ``fields`` has too is left out.

    Example:
        >>> bytes(json_pieces({"model": "m"}, messages=[Fragment(b"{}"), Fragment(b"[]")]))
        b'{"model":"m","messages":[{},[]]}'
    """
    parts: list[Fragment | Sequence[Fragment]] = []
    text = encoded(fields)[:-1]
    for name, array in arrays.items():
        if name not in fields:
            comma = b"" if text == b"{" else b","
            parts += [Fragment(text + comma + encoded(name) + b":["), array]
            text = b"]"
    return JsonPieces((*parts, Fragment(text + b"}")))


def whole_characters(text: str) -> str:
    r"""Return ``text`` with surrogate pairs joined and unpaired surrogates replaced.

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
    for _ in range(_MAX_DEPTH):
        containers = [one for one in level if isinstance(one, dict | list)]
        if not containers:
            return
        level = [item for one in containers for item in (one.values() if isinstance(one, dict) else one)]
    if any(isinstance(one, dict | list) for one in level):
        raise ValueError(f"nested deeper than {_MAX_DEPTH} levels")


def _described(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")
