"""The regions of a text that are not searched: reasoning, and blocks of code that are not a call themselves."""

from __future__ import annotations

import re

from ._calls import OfferedTools, ParsedCalls
from ._json_calls import parse_values
from ._pythonic import parse_script

THOUGHT = re.compile(r"^[ \t]*+(?:<think(?:ing)?>|\[THINK\])|(?P<end></think(?:ing)?>|\[/THINK\])", re.MULTILINE)
"""The beginning of reasoning, or its end, if it began in the prompt."""

FENCE = re.compile(r"^[ \t]*+(?P<fence>`{3,}|~{3,})(?P<label>[^\n`]*)$\n?", re.MULTILINE)
"""The first line of a block of code."""

_THOUGHT_END = re.compile(r"</think(?:ing)?>|\[/THINK\]")
_FENCE_END = re.compile(r"^[ \t]*+(`{3,}|~{3,})[ \t]*+$", re.MULTILINE)
_CALL_END = re.compile(r"\s*+(?:`{3,}+[ \t]*+(?=\n|\Z)|\Z)")
_JSON = re.compile(r"\s*(?=[\[{])")
_JSON_LABELS = frozenset({"", "json", "tool_call", "tool_code", "tool"})
_SCRIPT_LABELS = frozenset({"tool_call", "tool_code", "tool"})


def skip_thought(text: str, opening: re.Match[str], _tools: OfferedTools) -> ParsedCalls:
    """Skip reasoning. If it does not end, the rest of the text belongs to it."""
    if opening["end"]:
        return ParsedCalls(opening.end(), ends_thought=True)
    end = _THOUGHT_END.search(text, opening.end())
    return ParsedCalls(end.end() if end else len(text))


def parse_block(text: str, opening: re.Match[str], tools: OfferedTools) -> ParsedCalls:
    """Parse a block of code that consists of calls; skip any other.

    Raises:
        UnusableCall: if the block contains a call that cannot be used.
    """
    label = opening["label"].strip()
    start = opening.end()
    parsed = None
    if label in _JSON_LABELS and (content := _JSON.match(text, start)):
        parsed = parse_values(text, content.end(), tools, _CALL_END)
    if parsed is None and label in _SCRIPT_LABELS:
        parsed = parse_script(text, start, tools, _CALL_END)
    return parsed if parsed is not None and parsed.calls else ParsedCalls(_end_of_block(text, start, opening["fence"]))


def _end_of_block(text: str, start: int, fence: str) -> int:
    for end in _FENCE_END.finditer(text, start):
        if end[1].startswith(fence):
            return end.end()
    return len(text)
