"""Parser for calls that are JSON objects with the name of the tool and its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecoder
from typing import Any, NoReturn

from ._calls import FoundCall, OfferedTools, ParsedCalls, UnusableCall, checked_call

_NAMES = ("name", "function", "tool")
_ARGUMENTS = ("arguments", "parameters")
_OTHER_KEYS = frozenset({"id", "type", "index", "tool_call_id"})
_CALL_KEYS = frozenset(_NAMES) | frozenset(_ARGUMENTS) | _OTHER_KEYS

_SEPARATOR = re.compile(r"\s*+[;,]?+\s*+(?=[\[{])")
_SAME_LINE = re.compile(r"[ \t]*+[;,]?+[ \t]*+(?=[\[{])")
_FIRST_KEY = re.compile(r'[\[{\s]*+"(?:name|function|tool|arguments|parameters|tool_calls)"\s*:')


def parse_bare(text: str, opening: re.Match[str], tools: OfferedTools) -> ParsedCalls:
    """Parse the JSON values on a line. Values that are not calls are skipped.

    Raises:
        UnusableCall: if there is a call that cannot be used.
    """
    calls, end = _read_values(text, opening.end(), tools, _SAME_LINE)
    return ParsedCalls(max(end, opening.end() + 1), tuple(calls))


def json_calls(closing: re.Pattern[str]) -> Callable[[str, re.Match[str], OfferedTools], ParsedCalls]:
    """Return the parser of calls between an opening and a closing."""

    def parse(text: str, opening: re.Match[str], tools: OfferedTools) -> ParsedCalls:
        parsed = parse_values(text, opening.end(), tools, closing, is_marked=True)
        if parsed is None:
            raise UnusableCall
        return parsed

    return parse


def parse_values(
    text: str, start: int, tools: OfferedTools, closing: re.Pattern[str], *, is_marked: bool = False
) -> ParsedCalls | None:
    """Parse one or more JSON values up to the closing. Return ``None`` if they are not calls.

    Args:
        text: the text.
        start: where the first value begins.
        tools: the tools that may be called.
        closing: the closing.
        is_marked: whether the opening was that of a call, so that the arguments may be missing.

    Raises:
        UnusableCall: if there is a call that cannot be used.
    """
    calls, end = _read_values(text, start, tools, _SEPARATOR, is_marked=is_marked)
    if not calls:
        return None
    if (closed := closing.match(text, end)) is None:
        raise UnusableCall
    return ParsedCalls(closed.end(), tuple(calls))


def decode_object(text: str, start: int) -> tuple[dict[str, Any], int]:
    """Return the JSON object at a position, and its end.

    Raises:
        UnusableCall: if it is missing.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        raise UnusableCall from None
    if not isinstance(value, dict):
        raise UnusableCall
    return value, end


def _read_values(
    text: str, end: int, tools: OfferedTools, separator: re.Pattern[str], *, is_marked: bool = False
) -> tuple[list[FoundCall], int]:
    """Return the calls in joined values, and the end of the last value. There are no calls if the values are data."""
    calls, is_data = list[FoundCall](), False
    while True:
        try:
            value, end = _DECODER.raw_decode(text, end)
        except (ValueError, RecursionError):
            if calls or _FIRST_KEY.match(text, end):
                raise UnusableCall from None
            return [], end
        found = _calls(value, tools, is_marked=is_marked)
        calls += found
        is_data = is_data or not found
        if calls and is_data:
            raise UnusableCall
        if (following := separator.match(text, end)) is None:
            return calls, end
        end = following.end()


def _calls(value: Any, tools: OfferedTools, *, is_marked: bool) -> list[FoundCall]:
    """Return the calls in a value; no calls if it is data."""
    if isinstance(value, dict) and value.keys() == {"tool_calls"}:
        value = value["tool_calls"]
    items = value if isinstance(value, list) else [value]
    found = [_call(one, tools, is_marked=is_marked) for one in items]
    calls = [one for one in found if one is not None]
    if calls and len(calls) < len(found):
        raise UnusableCall
    return calls


def _call(value: Any, tools: OfferedTools, *, is_marked: bool) -> FoundCall | None:
    """Return the call that an object describes, or ``None`` if it is data.

    Unknown keys are not accepted, and arguments are required unless the object is marked as a call.
    """
    if not isinstance(value, dict) or not value.keys() <= _CALL_KEYS:
        return None
    if isinstance(value.get("function"), dict) and value.keys() <= _OTHER_KEYS | {"function"}:
        value = value["function"]
        if not value.keys() <= _CALL_KEYS:
            return None
    names = [value[key] for key in _NAMES if key in value]
    arguments = [value[key] for key in _ARGUMENTS if key in value]
    if not names or not (arguments or is_marked):
        return None
    if len(names) > 1 or len(arguments) > 1 or not isinstance(names[0], str):
        raise UnusableCall
    return checked_call(names[0], arguments[0] if arguments else {}, tools)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


_DECODER = JSONDecoder(parse_constant=_refuse_constant)
