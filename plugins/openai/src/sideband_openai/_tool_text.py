"""Parser for tool calls that small models write as text.

Three forms are recognized: ``<tool_call>…</tool_call>``, a fenced block, and bare JSON that begins and ends a line. The
content must be a call, or a list of calls only, of tools in the request. Anything else remains text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from json import JSONDecoder
from typing import Any, NoReturn

from attrs import frozen
from sideband_model_client import compact, parse_object

_MAX_CHARACTERS = 256 * 1024
_MAX_ATTEMPTS = 100
_MAX_CALLS = 64

_TAGGED = re.compile(r"<tool_call>\s*(?:```(?:json)?\s*)?(?=[\[{])")
_FENCE = re.compile(r"^[ \t]*```[ \t]*(?:json|tool_call|tool_code|tool)?[ \t]*\n\s*(?=[\[{])", re.MULTILINE)
_BARE = re.compile(r"(?:\A\s*|^)(?=[\[{])", re.MULTILINE)
_TAG_END = re.compile(r"\s*(?:```)?\s*(?:</tool_call>|\Z)")
_FENCE_END = re.compile(r"\s*(?:```[ \t]*(?=\n|\Z)|\Z)")
_NEXT = re.compile(r"\s*(?=[\[{])")
_BARE_END = re.compile(r"[ \t]*(?=\n|\Z)")

_NAMES = ("name", "function", "tool")
_ARGUMENTS = ("arguments", "parameters")
_THOUGHT_END = "</think>"
_OTHER_KEYS = frozenset({"id", "type", "index", "tool_call_id"})


@frozen
class FoundCall:
    """A call found in text.

    Attributes:
        name: the name of the tool.
        arguments: the arguments by name.
    """

    name: str
    arguments: dict[str, Any]


@frozen
class _CallSpan:
    """A range of the text and the calls in it."""

    start: int
    end: int
    calls: tuple[FoundCall, ...]


def find_calls(text: str, offered: Collection[str]) -> tuple[str, tuple[FoundCall, ...]]:
    r"""Return the text without the calls in it, and the calls.

    Args:
        text: the text of the model. More than 256 Ki characters are not searched.
        offered: the names of the tools that the model may call.

    Example:
        >>> find_calls('I look.\n{"name": "sky", "arguments": {"at": "noon"}}', {"sky"})
        ('I look.', (FoundCall(name='sky', arguments={'at': 'noon'}),))
    """
    if not offered or len(text) > _MAX_CHARACTERS or "{" not in text:
        return text, ()
    kept, calls, position = [], list[FoundCall](), 0
    for span in _spans(text, offered):
        kept.append(text[position : span.start])
        calls += span.calls
        position = span.end
    if not calls or len(calls) > _MAX_CALLS:
        return text, ()
    kept.append(text[position:])
    return "\n".join(part.strip() for part in kept if part.strip()), tuple(calls)


def _spans(text: str, offered: Collection[str]) -> Iterator[_CallSpan]:
    # Calls within the reasoning are ignored.
    position = text.rfind(_THOUGHT_END) + len(_THOUGHT_END) if _THOUGHT_END in text else 0
    for _ in range(_MAX_ATTEMPTS):
        begin, end = _next(text, position)
        if begin is None:
            return
        span = _span(text, begin, end, offered)
        if span.calls:
            yield span
        position = span.end


def _next(text: str, position: int) -> tuple[re.Match[str] | None, re.Pattern[str]]:
    """Return the next possible opening of a call and the pattern that must close it.

    If several openings lead to the same JSON, return the longest.
    """
    found = [
        (match, end)
        for begin, end in ((_TAGGED, _TAG_END), (_FENCE, _FENCE_END), (_BARE, _BARE_END))
        if (match := begin.search(text, position)) is not None
    ]
    return min(found, key=lambda one: (one[0].end(), one[0].start()), default=(None, _BARE_END))


def _span(text: str, begin: re.Match[str], end: re.Pattern[str], offered: Collection[str]) -> _CallSpan:
    """Return the span that begins here: one or more values up to the closing.

    A span without calls ends where parsing stopped.
    """
    calls, after = list[FoundCall](), begin.end()
    while True:
        try:
            value, after = _DECODER.raw_decode(text, after)
        except (ValueError, RecursionError):
            return _CallSpan(begin.start(), max(after, begin.end() + 1), ())
        found = _calls(value, offered, is_marked=end is _TAG_END)
        calls += found
        closing = end.match(text, after)
        if not found or len(calls) > _MAX_CALLS:
            return _CallSpan(begin.start(), after, ())
        if closing is not None:
            return _CallSpan(begin.start(), closing.end(), tuple(calls))
        if (following := _NEXT.match(text, after)) is None:
            return _CallSpan(begin.start(), after, ())
        after = following.end()


def _calls(value: Any, offered: Collection[str], *, is_marked: bool) -> tuple[FoundCall, ...]:
    found = [_call(one, offered, is_marked=is_marked) for one in (value if isinstance(value, list) else [value])]
    calls = tuple(one for one in found if one is not None)
    return calls if len(calls) == len(found) else ()


def _call(value: Any, offered: Collection[str], *, is_marked: bool) -> FoundCall | None:
    """Return the call that an object describes, or ``None``.

    Unknown keys are not accepted, and arguments are required unless the object is in ``<tool_call>`` tags.
    """
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        if not value.keys() <= _OTHER_KEYS | {"function"}:
            return None
        value = value["function"]
    names = [value[key] for key in _NAMES if key in value]
    arguments = [value[key] for key in _ARGUMENTS if key in value]
    unknown = value.keys() - _OTHER_KEYS - set(_NAMES) - set(_ARGUMENTS)
    if unknown or len(names) != 1 or len(arguments) > 1 or not (arguments or is_marked):
        return None
    if not isinstance(names[0], str) or names[0] not in offered:
        return None
    given = _arguments(arguments[0] if arguments else {})
    return None if given is None else FoundCall(names[0], given)


def _arguments(value: Any) -> dict[str, Any] | None:
    """Return the arguments from an object or its JSON text, or ``None`` if they are invalid."""
    try:
        return parse_object(value if isinstance(value, str) else compact(value))
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


_DECODER = JSONDecoder(parse_constant=_refuse_constant)
