"""The difference of two texts, in a time that grows with their length and not with its square.

Lines that occur once in both texts, in the same order, divide the texts into parts. Of each part, the lines that are
equal at its beginning and its end are kept. Between these, only a limited number of lines is compared exactly, and the
others count as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from attrs import frozen

_CONTEXT = 3
_MOST_LINES = 200
_LONGEST_LINE = 500
_MOST_COMPARED = 100_000  # pairs of lines, which take 0.2 s at worst
_NO_END = "\\ no line feed at the end of the file"


@frozen
class Replaced:
    """Lines that are replaced: ``before[start:end]`` by ``after[new_start:new_end]``."""

    start: int
    end: int
    new_start: int
    new_end: int


@frozen
class Difference:
    """The difference of two texts.

    Attributes:
        before, after: their lines, each with its line feed.
        replaced: what is replaced, in order.
    """

    before: Sequence[str]
    after: Sequence[str]
    replaced: tuple[Replaced, ...]

    @classmethod
    def of(cls, before: str, after: str) -> Difference:
        """Return the difference of two texts."""
        old, new = _lines_of(before), _lines_of(after)
        return cls(old, new, tuple(_replaced(old, new)))

    @property
    def added(self) -> int:
        """The number of added lines."""
        return sum(one.new_end - one.new_start for one in self.replaced)

    @property
    def removed(self) -> int:
        """The number of removed lines."""
        return sum(one.end - one.start for one in self.replaced)

    def text(self) -> str:
        """Return the changed lines with some lines around them, in the unified format. A long one is cut.

        Lines are shown or omitted completely: a part of a secret could not be recognized.
        """
        lines = [*self._lines()]
        hidden = len(lines) - _MOST_LINES
        if hidden > 0:
            changes = [one[:1] for one in lines[_MOST_LINES:]]
            more = f"[{hidden:,} more lines: {changes.count('+'):,} added, {changes.count('-'):,} removed]"
            lines = [*lines[:_MOST_LINES], more]
        return "\n".join(lines)

    def _lines(self) -> Iterator[str]:
        for hunk in self._hunks():
            start, new_start = max(0, hunk[0].start - _CONTEXT), max(0, hunk[0].new_start - _CONTEXT)
            end = min(len(self.before), hunk[-1].end + _CONTEXT)
            new_end = min(len(self.after), hunk[-1].new_end + _CONTEXT)
            yield f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@"
            at = start
            for one in hunk:
                yield from _marked(" ", self.before[at : one.start])
                yield from _marked("-", self.before[one.start : one.end])
                yield from _marked("+", self.after[one.new_start : one.new_end])
                at = one.end
            yield from _marked(" ", self.before[at:end])

    def _hunks(self) -> list[list[Replaced]]:
        hunks: list[list[Replaced]] = []
        for one in self.replaced:
            if hunks and one.start - hunks[-1][-1].end <= 2 * _CONTEXT:
                hunks[-1].append(one)
            else:
                hunks.append([one])
        return hunks


def _lines_of(text: str) -> list[str]:
    """Return the lines, each with its line feed. Other characters that some programs count as line ends are kept."""
    *lines, last = text.split("\n")
    return [*(f"{line}\n" for line in lines), *([last] if last else [])]


def _range(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        text = line.removesuffix("\n")
        yield mark + (text if len(text) <= _LONGEST_LINE else f"[a line of {len(text):,} characters]")
        if text == line:
            yield _NO_END


def _replaced(before: Sequence[str], after: Sequence[str]) -> Iterator[Replaced]:
    start, new_start, remaining = 0, 0, _MOST_COMPARED
    for anchor, new_anchor in [*_anchors(before, after), (len(before), len(after))]:
        end, new_end = anchor, new_anchor
        while start < end and new_start < new_end and before[start] == after[new_start]:
            start, new_start = start + 1, new_start + 1
        while end > start and new_end > new_start and before[end - 1] == after[new_end - 1]:
            end, new_end = end - 1, new_end - 1
        pairs = (end - start) * (new_end - new_start)
        if 0 < pairs <= remaining:
            remaining -= pairs
            yield from _compared(before[start:end], after[new_start:new_end], start, new_start)
        elif end > start or new_end > new_start:
            yield Replaced(start, end, new_start, new_end)
        start, new_start = anchor, new_anchor


def _compared(old: Sequence[str], new: Sequence[str], start: int, new_start: int) -> Iterator[Replaced]:
    for tag, first, last, new_first, new_last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Replaced(start + first, start + last, new_start + new_first, new_start + new_last)


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest list of pairs of equal lines that occur once in both texts, in the order of both."""
    counts, new_counts = Counter(before), Counter(after)
    places = {line: number for number, line in enumerate(after) if new_counts[line] == 1}
    pairs = [(number, places[line]) for number, line in enumerate(before) if counts[line] == 1 and line in places]
    ends: list[int] = []  # the least last line of an increasing list of each length
    chosen: list[int] = []
    previous: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        previous.append(chosen[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        chosen[length : length + 1] = [index]
    found: list[tuple[int, int]] = []
    index = chosen[-1] if chosen else -1
    while index >= 0:
        found.append(pairs[index])
        index = previous[index]
    return found[::-1]
