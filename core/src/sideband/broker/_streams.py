"""Redact streamed text, including values that are split across pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field

from ._placeholder import placeholder
from ._redaction import MIN_LENGTH, FormIndex, Redaction

_PIECE = 16_384
_MAX_HELD = 65_536
_MAX_MATCH = 256
_MAX_TEXTS = 256
_TEXTS = ("text", "arguments")


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
    _index: FormIndex | None = None
    # No incomplete value begins before this position.
    _at: int = 0
    # The span of the last group of overlapping values, and the start of the first value in the text.
    _start: int = 0
    _end: int = 0
    _first: int | None = None
    _unmatched: str = ""  # values are redacted, patterns are not searched yet

    def feed(self, piece: str) -> str:
        """Add a piece, and return the text that is safe to output."""
        self._text += piece
        index = self._redactor.index
        if index is not self._index:
            self._index = index
            self._at, self._start, self._end, self._first = 0, 0, 0, None
        self._scan(index)
        cut = self._start if self._end > self._at else self._at
        if len(self._text) - cut <= _MAX_HELD or cut == self._at:
            return self._matched(self._take(cut), last=False)
        # Too many overlapping values. Replace their whole span with one placeholder, which hides its length.
        before = self._take(cut)
        self._text = self._text[self._end :]
        self._at, self._start, self._end, self._first = 0, 0, 0, None
        return self._matched(f"{before}{placeholder()}", last=False)

    def end(self) -> str:
        """Return the text that was held back. No more pieces may follow."""
        left, self._text = self._redactor.values(self._text), ""
        self._at, self._start, self._end, self._first = 0, 0, 0, None
        return self._matched(left, last=True)

    def _scan(self, index: FormIndex) -> None:
        text, heads, starts = self._text, index.heads, index.starts
        for at in range(self._at, len(text)) if heads else ():
            head = text[at : at + MIN_LENGTH]
            known = heads.get(head)
            if head in starts or (known and self._waits(at, known)):
                self._at = at
                return
        self._at = len(text)

    def _waits(self, at: int, forms: tuple[str, ...]) -> bool:
        """Return whether an incomplete form may begin here. If not, store the span of the longest complete form."""
        text = self._text
        left, longest = len(text) - at, 0
        for form in forms:
            if len(form) > left:
                if form.startswith(text[at:]):
                    return True
            elif len(form) > longest and text.startswith(form, at):
                longest = len(form)
        if longest:
            if at >= self._end:
                self._start = at
            self._end = max(self._end, at + longest)
            self._first = at if self._first is None else self._first
        return False

    def _take(self, cut: int) -> str:
        """Remove the text before ``cut``, which no value spans, and return it redacted."""
        done, self._text = self._text[:cut], self._text[cut:]
        if self._first is not None and self._first < cut:
            done = self._redactor.values(done)
        self._at, self._start, self._end = self._at - cut, max(0, self._start - cut), max(0, self._end - cut)
        self._first = self._start if self._end else None
        return done

    def _matched(self, text: str, *, last: bool) -> str:
        """Return the text with matches of patterns redacted. Hold back its end, where a match may begin."""
        text, self._unmatched = self._unmatched + text, ""
        found = self._redactor.spans(text)
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
