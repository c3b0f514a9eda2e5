"""Finds tool calls in text, as small models write them whatever they were told.

Three forms count: ``<tool_call>…</tool_call>``, a fenced block, and bare JSON that begins and ends a line. What stands
there must be a call, or a list of nothing but calls, of tools that were offered. Anything else stays text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from json import JSONDecoder
from typing import Any, NoReturn

from attrs import frozen
from sideband_model_client import compact, parse_object

_LONGEST = 256 * 1024
_MOST_TRIES = 100
_MOST_CALLS = 64

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
_BESIDES = frozenset({"id", "type", "index", "tool_call_id"})


@frozen
class FoundCall:
    """A call that was found.

    Attributes:
        name: the tool.
        arguments: by name.
    """

    name: str
    arguments: dict[str, Any]


@frozen
class _CallSpan:
    """Where calls stand in a text."""

    start: int
    end: int
    calls: tuple[FoundCall, ...]


def find_calls(text: str, offered: Collection[str]) -> tuple[str, tuple[FoundCall, ...]]:
    r"""The calls in a text, and the text without them.

    Args:
        text: what a model said. Beyond 256 KiB it is not looked at.
        offered: the names of the tools that it may call.

    Example:
        >>> find_calls('I look.\n{"name": "sky", "arguments": {"at": "noon"}}', {"sky"})
        ('I look.', (FoundCall(name='sky', arguments={'at': 'noon'}),))
    """
    if not offered or len(text) > _LONGEST or "{" not in text:
        return text, ()
    kept, calls, position = [], list[FoundCall](), 0
    for span in _spans(text, offered):
        kept.append(text[position : span.start])
        calls += span.calls
        position = span.end
    if not calls or len(calls) > _MOST_CALLS:
        return text, ()
    kept.append(text[position:])
    return "\n".join(part.strip() for part in kept if part.strip()), tuple(calls)


def _spans(text: str, offered: Collection[str]) -> Iterator[_CallSpan]:
    # What was only considered is no call.
    position = text.rfind(_THOUGHT_END) + len(_THOUGHT_END) if _THOUGHT_END in text else 0
    for _ in range(_MOST_TRIES):
        begin, end = _next(text, position)
        if begin is None:
            return
        span = _span(text, begin, end, offered)
        if span.calls:
            yield span
        position = span.end


def _next(text: str, position: int) -> tuple[re.Match[str] | None, re.Pattern[str]]:
    """Where the next call may begin, and how it must end. Of several that begin together, the longest opening."""
    found = [
        (match, end)
        for begin, end in ((_TAGGED, _TAG_END), (_FENCE, _FENCE_END), (_BARE, _BARE_END))
        if (match := begin.search(text, position)) is not None
    ]
    return min(found, key=lambda one: (one[0].end(), one[0].start()), default=(None, _BARE_END))


def _span(text: str, begin: re.Match[str], end: re.Pattern[str], offered: Collection[str]) -> _CallSpan:
    """What begins here: one value or several, up to their closing. Without calls, it ends where it could be read."""
    calls, after = list[FoundCall](), begin.end()
    while True:
        try:
            value, after = _DECODER.raw_decode(text, after)
        except (ValueError, RecursionError):
            return _CallSpan(begin.start(), max(after, begin.end() + 1), ())
        found = _calls(value, offered, is_marked=end is _TAG_END)
        calls += found
        closing = end.match(text, after)
        if not found or len(calls) > _MOST_CALLS:
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
    """The call that an object describes. Where nothing else says so, it must have arguments, and nothing foreign."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        if not value.keys() <= _BESIDES | {"function"}:
            return None
        value = value["function"]
    names = [value[key] for key in _NAMES if key in value]
    arguments = [value[key] for key in _ARGUMENTS if key in value]
    foreign = value.keys() - _BESIDES - set(_NAMES) - set(_ARGUMENTS)
    if foreign or len(names) != 1 or len(arguments) > 1 or not (arguments or is_marked):
        return None
    if not isinstance(names[0], str) or names[0] not in offered:
        return None
    given = _arguments(arguments[0] if arguments else {})
    return None if given is None else FoundCall(names[0], given)


def _arguments(value: Any) -> dict[str, Any] | None:
    """Arguments: an object, or the text of one."""
    try:
        return parse_object(value if isinstance(value, str) else compact(value))
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = JSONDecoder(parse_constant=_refuse_constant)
