"""The search for calls in a text. Several calls are found together or not at all.

A call must end its line, except for further calls and stop tokens. Reasoning, quoted lines, inline code and blocks of
code are not searched, but a block may itself be a call. A call that cannot be used makes the meaning of the others
uncertain, so that then none is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from attrs import Factory, define, field, frozen

from ._calls import END_OF_TURN, FoundCall, OfferedTools, ParsedCalls, UnusableCall
from ._copies import contains_any
from ._formats import FORMATS, TextFormat

_MAX_CHARACTERS = 256 * 1024
_MAX_ATTEMPTS = 100
_MAX_CALLS = 64

_STOP_TOKENS = re.compile(rf"(?:\s*+{END_OF_TURN})*+")
_JOINT = re.compile(r"[ \t]*+[;,]?+\s*+")
_LINE_END = re.compile(r"[ \t]*+[;,]?+[ \t]*+(?=\n|\Z)")
_QUOTES = ("`", '"', "'", "\u201c", "\u2018", "\xab")


@frozen
class _CallSpan:
    """A range of the text with calls.

    Attributes:
        start, end: the range, with the stop tokens after the calls.
        parsed: the calls.
        form: their format.
    """

    start: int
    end: int
    parsed: ParsedCalls
    form: TextFormat


@define
class _Openings:
    """Finds the next opening of any format. Each format is searched only once from each position."""

    text: str
    _next: dict[TextFormat, re.Match[str] | None] = field(
        default=Factory(
            lambda self: {
                form: form.opening.search(self.text) if form.marker in self.text else None for form in FORMATS
            },
            takes_self=True,
        ),
        init=False,
    )

    def after(self, position: int) -> tuple[re.Match[str], TextFormat] | None:
        """Return the first opening at or after a position. If two formats begin there, the first in the table wins."""
        first: tuple[re.Match[str], TextFormat] | None = None
        for form, match in self._next.items():
            if match is not None and match.start() < position:
                match = self._next[form] = form.opening.search(self.text, position)  # noqa: PLW2901
            if match is not None and (first is None or match.start() < first[0].start()):
                first = match, form
        return first


def find_calls(
    text: str, tools: OfferedTools, quotable: Callable[[], Iterable[str]] = tuple
) -> tuple[str, tuple[FoundCall, ...]]:
    r"""Return the text without the calls in it, and the calls.

    Args:
        text: the text of the model. More than 256 Ki characters are not searched.
        tools: the tools that the model may call.
        quotable: returns the texts that the model may have copied from others. A call in one of them is not a call of
            the model.

    Example:
        >>> find_calls('I look.\n{"name": "sky", "arguments": {"at": "noon"}}', {"sky": {}})
        ('I look.', (FoundCall(name='sky', arguments={'at': 'noon'}),))
    """
    if not tools or len(text) > _MAX_CHARACTERS:
        return text, ()
    try:
        spans = _spans(text, tools)
    except UnusableCall:
        return text, ()
    calls = tuple(call for span in spans for call in span.parsed.calls)
    if not calls or len(calls) > _MAX_CALLS or contains_any(quotable, _distinctive(text, spans)):
        return text, ()
    ends = [0, *(span.end for span in spans)]
    kept = [text[end:start] for end, start in zip(ends, [*(span.start for span in spans), len(text)], strict=True)]
    return "\n".join(part.strip() for part in kept if part.strip()), calls


def _spans(text: str, tools: OfferedTools) -> list[_CallSpan]:
    openings, spans = _Openings(text), list[_CallSpan]()
    position = 0
    for _ in range(_MAX_ATTEMPTS):
        if (found := openings.after(position)) is None:
            break
        match, form = found
        if _is_quoted(text[spans[-1].end if spans else 0 : match.start()]):
            position = match.end()
            continue
        parsed = form.parse(text, match, tools)
        position = parsed.end
        if parsed.calls:
            position = _end_of_line(text, parsed.end, openings)
            spans.append(_CallSpan(match.start(), position, parsed, form))
        elif parsed.ends_thought and spans:
            raise UnusableCall  # the calls may be a part of the reasoning, whose beginning was in the prompt
    else:
        raise UnusableCall
    if any(span.form.ends_answer for span in spans) and text[spans[-1].end :].strip():
        raise UnusableCall
    return spans


def _end_of_line(text: str, end: int, openings: _Openings) -> int:
    """Return the end of calls with the stop tokens after them. Other text must not follow on the same line."""
    joint = _JOINT.match(text, end)
    following = openings.after(joint.end() if joint else end)
    if joint and following is not None and following[0].start() == joint.end():
        return joint.end()
    stop = _STOP_TOKENS.match(text, end)
    line = _LINE_END.match(text, stop.end() if stop else end)
    if line is None:
        raise UnusableCall
    return line.end()


def _is_quoted(before: str) -> bool:
    """Return whether what follows is in inline code, after a quotation mark or in a quoted line."""
    before = before[before.rfind("\n") + 1 :]
    return before.count("`") % 2 == 1 or before.endswith(_QUOTES) or before.lstrip().startswith(">")


def _distinctive(text: str, spans: list[_CallSpan]) -> list[str]:
    """Return the texts that show that a call was copied.

    These are whole calls, and for formats without escapes also the markup between two values: a value that the model
    copied can contain it, and would end with it.
    """
    values = [value for span in spans for value in span.parsed.values]
    between = [text[end:start] for (_, end), (start, _) in pairwise(values)]
    return [*(text[span.start : span.parsed.end] for span in spans), *between]
