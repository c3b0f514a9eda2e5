"""Redact streamed text, including values that are split across pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field

from ._form_beginnings import FormBeginnings
from ._placeholder import placeholder
from ._redaction import Redaction

_PIECE = 16_384
_MAX_HELD = 65_536
_MAX_MATCH = 256
_MAX_TEXTS = 256
_TEXTS = ("text", "arguments")
# Short forms occur in the text as it is, long ones also in lines, and in lines as escaped in JSON.
_PIECES = (
    (0, re.compile(r"(?s)(.+)()")),
    (1, re.compile(r"([^ \t\n\r]+)()|[ \t\n\r]+")),
    (1, re.compile(r"([^ \t\n\r\\]+)|(\\+\Z)|[ \t\n\r]+|\\+[rn]?")),
)


class _Front:
    """The search for the first position of a stream at which an incomplete form may begin.

    Args:
        beginnings: those of the forms to search for.
        pieces: matches the pieces of the text one by one: group 1 is what forms may contain, group 2 may turn out to be
            part of a separator, and the rest are separators. Holding back more than necessary is harmless.
    """

    def __init__(self, beginnings: FormBeginnings, pieces: re.Pattern[str]) -> None:
        self._beginnings = beginnings
        self._pieces = pieces
        self._rest = ""  # the end of the text, if it may be part of a separator
        self._kept = ""
        self._where: list[int] = []  # the position in the stream of each kept character

    def feed(self, text: str, end: int) -> int:
        """Add a text that ends at the position ``end`` of the stream, and return the first position."""
        longest = self._beginnings.longest
        if not longest:
            return end
        text = self._rest + text
        # An incomplete form is shorter than the longest form, so what comes long before the end does not matter.
        size = 2 * longest
        while size < len(text):
            kept, where = self._split(text[-size:], end)
            if len(kept) > longest:
                break
            size *= 4
        else:
            kept, where = self._split(text, end)
            kept, where = self._kept + kept, self._where + where
        at = self._beginnings.first(kept)
        # What comes before the position is not needed again.
        self._kept, self._where = kept[at:], where[at:]
        return where[at] if at < len(kept) else end

    def _split(self, text: str, end: int) -> tuple[str, list[int]]:
        """Return the kept characters and their positions, and remember the end if it may be part of a separator."""
        self._rest, offset = "", end - len(text)
        kept: list[str] = []
        where: list[int] = []
        for match in self._pieces.finditer(text):
            if match[2]:
                self._rest = match[2][-1]  # one stands for all, so that a stream of them takes no more time
            elif match[1]:
                kept.append(match[1])
                where += range(offset + match.start(), offset + match.end())
        return "".join(kept), where


@define(eq=False)
class TextRedaction:
    """The redaction of one text that arrives in arbitrary pieces.

    The concatenated output is the redacted text. The end of the input is held back while a known value may begin there:
    usually a few characters, and at most the length of the longest form of a value, unless values overlap. If plugins
    have patterns, the last 256 characters are held back, and matches of up to that length are found.

    Args:
        redactor: the redaction of the host. Values that are added during the stream are found too.
    """

    _redactor: Redaction
    _text: str = ""  # received but not returned
    _size: int = 0  # the number of characters received
    _generation: int = 0
    _escaped: bool = False  # a backslash was received
    _fronts: Sequence[_Front] = ()
    _unmatched: str = ""  # values are redacted, patterns are not searched yet

    def feed(self, piece: str) -> str:
        """Add a piece, and return the text that is safe to output."""
        self._text += piece
        self._size += len(piece)
        escaped = self._escaped or "\\" in piece
        if self._generation != self._redactor.generation or escaped != self._escaped:
            self._generation, self._escaped, piece = self._redactor.generation, escaped, self._text
            forms = self._redactor.beginnings
            # Without a backslash, the last one is equal to the one before.
            self._fronts = [_Front(forms[long], pieces) for long, pieces in _PIECES[: 3 if escaped else 2]]
        emitted = self._size - len(self._text)
        at = min(front.feed(piece, self._size) for front in self._fronts) - emitted
        cut, end = at, at
        spans = self._redactor.value_spans(self._text)
        for start, last in reversed(spans):
            if start < cut < last:
                cut, end = start, last
        if len(self._text) - cut <= _MAX_HELD or cut == at:
            return self._matched(self._take(cut, clean=not spans), last=False)
        # Too many overlapping values. Replace their whole span with one placeholder, which hides its length.
        before = self._take(cut)
        self._text = self._text[end - cut :]
        self._generation = 0
        return self._matched(f"{before}{placeholder()}", last=False)

    def end(self) -> str:
        """Return the text that was held back. No more pieces may follow."""
        return self._matched(self._take(len(self._text)), last=True)

    def _take(self, cut: int, *, clean: bool = False) -> str:
        """Remove the text before ``cut``, which no value spans, and return it redacted unless it has no values."""
        done, self._text = self._text[:cut], self._text[cut:]
        return done if clean else self._redactor.values(done)

    def _matched(self, text: str, *, last: bool) -> str:
        """Return the text with matches of patterns redacted. Hold back its end, where a match may begin."""
        text, self._unmatched = self._unmatched + text, ""
        found = self._redactor.match_spans(text)
        if found is None:
            return text
        cut = len(text) if last else max(0, len(text) - _MAX_MATCH)
        while spanning := [start for start, end in found if start < cut < end]:
            cut = min(spanning)
        if len(text) - cut > _MAX_HELD:
            cut = len(text)
        self._unmatched = text[cut:]
        return self._redactor.matches(text[:cut])


@define(eq=False)
class PartRedaction:
    """The redaction of the parts of one streamed result, whose texts continue from part to part.

    The strings under ``text`` and ``arguments`` of otherwise equal parts form one text. All other values are redacted
    individually.

    Args:
        redactor: the redaction of the host.
    """

    _redactor: Redaction
    _type: Any = None
    _texts: dict[tuple[str, str], tuple[dict[str, Any], TextRedaction]] = field(factory=dict, init=False)

    def feed(self, part: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Add a part, and yield the parts that are safe to output, in order. Long texts are split."""
        if part.get("type") != self._type or len(self._texts) > _MAX_TEXTS:
            yield from self.end()
            self._type = part.get("type")
        texts = {name: part[name] for name in _TEXTS if isinstance(part.get(name), str)}
        rest = self._redactor.data({name: value for name, value in part.items() if name not in texts})
        if not texts:
            yield rest
            return
        same = repr([(name, value) for name, value in sorted(part.items()) if not isinstance(value, str)])
        blank = {name: value if name == "type" or not isinstance(value, str) else "" for name, value in rest.items()}
        blank |= dict.fromkeys(texts, "")
        pending = blank != {**rest, **dict.fromkeys(texts, "")}  # whether the part has more than its texts
        shown = {**blank, **rest}
        for name, text in texts.items():
            _, stream = self._texts.setdefault((same, name), (blank, TextRedaction(self._redactor)))
            for start in range(0, len(text), _PIECE):
                piece = stream.feed(text[start : start + _PIECE])
                if piece:
                    yield {**shown, name: piece}
                    shown, pending = blank, False
        if pending:
            yield shown

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the ends of all texts that were held back."""
        waiting, self._texts = list(self._texts.items()), {}
        for (_, name), (blank, stream) in waiting:
            if left := stream.end():
                yield {**blank, name: left}
