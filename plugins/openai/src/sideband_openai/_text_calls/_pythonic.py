"""Parser for calls in Python's syntax: ``[sky(at="noon"), now()]``. Arguments must be literals, and have names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ._calls import FoundCall, OfferedTools, ParsedCalls, UnusableCall, checked_call
from ._python_literals import LiteralReader

_BUILT_IN = ".call"
_ANSWER_END = re.compile(r"\s*+(?:<\|[a-z_]{1,32}\|>\s*+)?\Z")


def parse_answer(text: str, opening: re.Match[str], tools: OfferedTools) -> ParsedCalls:
    """Parse an answer that consists of calls. If there is anything else in it, its beginning is skipped."""
    try:
        return parse_script(text, opening.end(), tools, _ANSWER_END)
    except UnusableCall:
        return ParsedCalls(opening.end() + 1)


def python_calls(closing: re.Pattern[str]) -> Callable[[str, re.Match[str], OfferedTools], ParsedCalls]:
    """Return the parser of calls between an opening and a closing."""

    def parse(text: str, opening: re.Match[str], tools: OfferedTools) -> ParsedCalls:
        parsed = parse_script(text, opening.end(), tools, closing)
        if not parsed.calls:
            raise UnusableCall
        return parsed

    return parse


def parse_script(text: str, start: int, tools: OfferedTools, closing: re.Pattern[str]) -> ParsedCalls:
    """Parse calls and lists of calls up to the closing, separated by newlines or semicolons.

    Raises:
        UnusableCall: if there is anything else.
    """
    reader, calls = LiteralReader(text, start), list[FoundCall]()
    while (closed := closing.match(text, reader.position)) is None:
        if reader.take("["):
            while not reader.take("]"):
                calls.append(_call(reader, tools))
                if not reader.take(","):
                    reader.expect("]")
                    break
        else:
            calls.append(_call(reader, tools))
        reader.take(";")
    return ParsedCalls(closed.end(), tuple(calls))


def _call(reader: LiteralReader, tools: OfferedTools, *, is_printed: bool = False) -> FoundCall:
    name = reader.name()
    reader.expect("(")
    if name == "print" and name not in tools and not is_printed:
        call = _call(reader, tools, is_printed=True)
        reader.expect(")")
        return call
    arguments = dict[str, Any]()
    while not reader.take(")"):
        key = reader.name()
        reader.expect("=")
        if key in arguments:
            raise UnusableCall
        arguments[key] = reader.value()
        if not reader.take(","):
            reader.expect(")")
            break
    return checked_call(name if name in tools else name.removesuffix(_BUILT_IN), arguments, tools)
