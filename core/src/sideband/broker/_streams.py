"""Redacts text that comes in pieces: a value that is split over several of them is found all the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field

from ._placeholder import placeholder
from ._redaction import SHORTEST, FormIndex, Redaction

_PIECE = 16_384
_LONGEST_HELD = 65_536
_LONGEST_MATCH = 256
_MOST_TEXTS = 256
_TEXTS = ("text", "arguments")


@define(eq=False)
class TextRedaction:
    """Redacts one text, in pieces that may be cut anywhere.

    What it gives out, put together, is the redacted whole. The end of what came is kept back as long as a known value
    may begin there: some characters at most times, and never more than the longest form of a value has, unless values
    overlap each other. Where plugins have patterns, the last 256 characters are kept back, and matches of up to that
    length are found.

    Args:
        redactor: knows the values; also those that become known meanwhile.
    """

    _redactor: Redaction
    _text: str = ""  # came, and was not given out
    _index: FormIndex | None = None
    # Before this place, nothing begins any more that is not complete.
    _at: int = 0
    # The last values that touch each other: from where to where; and where the first value in the text begins.
    _start: int = 0
    _end: int = 0
    _first: int | None = None
    _unmatched: str = ""  # without values, and not searched for patterns

    def feed(self, piece: str) -> str:
        """Take a piece; returns what can be given out."""
        self._text += piece
        index = self._redactor.index
        if index is not self._index:
            self._index = index
            self._at, self._start, self._end, self._first = 0, 0, 0, None
        self._scan(index)
        cut = self._start if self._end > self._at else self._at
        if len(self._text) - cut <= _LONGEST_HELD or cut == self._at:
            return self._matched(self._take(cut), last=False)
        # Values upon values without end. What they cover is masked as one, and its length goes untold.
        before = self._take(cut)
        self._text = self._text[self._end :]
        self._at, self._start, self._end, self._first = 0, 0, 0, None
        return self._matched(f"{before}{placeholder()}", last=False)

    def end(self) -> str:
        """What was kept back: nothing comes any more."""
        left, self._text = self._redactor.values(self._text), ""
        self._at, self._start, self._end, self._first = 0, 0, 0, None
        return self._matched(left, last=True)

    def _scan(self, index: FormIndex) -> None:
        text, heads, starts = self._text, index.heads, index.starts
        for at in range(self._at, len(text)) if heads else ():
            head = text[at : at + SHORTEST]
            known = heads.get(head)
            if head in starts or (known and self._waits(at, known)):
                self._at = at
                return
        self._at = len(text)

    def _waits(self, at: int, forms: tuple[str, ...]) -> bool:
        """Whether a form may begin here and is not complete yet. Notes the longest complete one if not."""
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
        """The text up to a place that no value spans, redacted."""
        done, self._text = self._text[:cut], self._text[cut:]
        if self._first is not None and self._first < cut:
            done = self._redactor.values(done)
        self._at, self._start, self._end = self._at - cut, max(0, self._start - cut), max(0, self._end - cut)
        self._first = self._start if self._end else None
        return done

    def _matched(self, text: str, *, last: bool) -> str:
        """The text without what patterns match. Its end is kept back, since a match may begin there."""
        text, self._unmatched = self._unmatched + text, ""
        found = self._redactor.spans(text)
        if found is None:
            return text
        cut = len(text) if last else max(0, len(text) - _LONGEST_MATCH)
        while spanning := [start for start, end in found if start < cut < end]:
            cut = min(spanning)
        if len(text) - cut > _LONGEST_HELD:
            cut = len(text)
        self._unmatched = text[cut:]
        return self._redactor.matches(text[:cut])


@define(eq=False)
class PartRedaction:
    """Redacts the parts of one result, whose texts go on from part to part.

    The strings under ``text`` and ``arguments`` of parts that are equal otherwise are one text. Everything else is
    redacted as it stands.

    Args:
        redactor: knows the values.
    """

    _redactor: Redaction
    _type: Any = None
    _texts: dict[tuple[str, str], tuple[dict[str, Any], TextRedaction]] = field(factory=dict, init=False)

    def feed(self, part: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Take a part; what can be handed on, in order: long texts in several parts."""
        if part.get("type") != self._type or len(self._texts) > _MOST_TEXTS:
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
        told = blank != {**rest, **dict.fromkeys(texts, "")}  # there is more to say than the texts
        shown = {**blank, **rest}
        for name, text in texts.items():
            _, stream = self._texts.setdefault((same, name), (blank, TextRedaction(self._redactor)))
            for start in range(0, len(text), _PIECE):
                piece = stream.feed(text[start : start + _PIECE])
                if piece:
                    yield {**shown, name: piece}
                    shown, told = blank, False
        if told:
            yield shown

    def end(self) -> Iterator[dict[str, Any]]:
        """What was kept back of all texts."""
        waiting, self._texts = list(self._texts.items()), {}
        for (_, name), (blank, stream) in waiting:
            if left := stream.end():
                yield {**blank, name: left}
