"""Find which of many forms occur in data, in a time that hardly depends on their number.

Data and forms are strings with one character per byte (of UTF-8, for text), which Python searches faster than bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence

from attrs import define, field, frozen

from ._form_parts import FormParts, form_parts

_SPACE = " \t"

# Shorter forms that are broken into lines would occur by chance.
_MIN_BROKEN = 11


@define(eq=False)
class FormSearch:
    """The search for the forms of all known values. Long forms are found even if they are broken into lines."""

    _parts: FormParts | None = field(default=None, init=False)

    def add(self, forms: Iterable[str]) -> None:
        """Add forms of at least four characters. The result of ``unbroken`` has been applied to them."""
        if self._parts is None:
            self._parts = form_parts()
        self._parts.add(forms)

    def find(self, data: str) -> list[str]:
        """Return the forms that occur in ``data``. A form may be repeated."""
        if self._parts is None:
            return []
        found = self._occurring(data)
        if _has_lines(data):
            found += filter(is_long, self._occurring(_joined(data)))
        if "\\" in data:
            found += filter(is_long, self._occurring(_joined(_unescaped(data))))
        return found

    def spans(self, data: str, ignored: Collection[str] = ()) -> Iterator[tuple[int, int, str]]:
        """Yield the start and end of all occurrences, with their forms, except of those that are ignored.

        Occurrences that overlap may be yielded as one, and those within one of a longer form may be left out.
        """
        if self._parts is None:
            return
        found = [form for form in self._occurring(data) if form not in ignored]
        yield from _runs_of([form for form in found if not is_long(form)], data)
        for version in (data, _unescaped(data)) if "\\" in data else (data,):
            joined = _joined(version)
            forms = found if joined == data else [form for form in self._occurring(joined) if form not in ignored]
            if forms := [*filter(is_long, forms)]:
                kept = _Kept.of(version)
                yield from (
                    (kept.at(start), kept.at(end - 1) + 1, form) for start, end, form in _runs_of(forms, joined)
                )

    def _occurring(self, data: str) -> list[str]:
        candidates = self._parts.candidates(data) if self._parts else ()
        return [form for form in dict.fromkeys(candidates) if form in data]


def unbroken(form: str) -> str:
    """Return a form as it is searched for: if it is long, without line breaks and the white space around them."""
    joined = _joined(f"{form}\n") if _has_lines(form) else form.strip(_SPACE)
    return joined if len(joined) >= _MIN_BROKEN else form


def is_long(form: str) -> bool:
    """Return whether a form, to which ``unbroken`` has been applied, is also found if it is broken into lines."""
    return len(form) >= _MIN_BROKEN and not _has_lines(form) and form.strip(_SPACE) == form


def _unescaped(data: str) -> str:
    """Return the data with line breaks instead of those escaped in JSON, in the same length.

    Other backslashes become spaces, since JSON in JSON escapes a line break more than once.
    """
    return data.replace("\\r", " \n").replace("\\n", " \n").replace("\\", " ")


def _joined(data: str) -> str:
    """Return the data with all lines joined, without the white space around line breaks."""
    return "".join([line.strip(_SPACE) for line in _lines(data)]) if _has_lines(data) else data


@frozen
class _Kept:
    """Where the lines of data begin in the data and in its joined lines, without the white space around them."""

    in_data: Sequence[int]
    in_joined: Sequence[int]

    @classmethod
    def of(cls, data: str) -> _Kept:
        """Return where the lines of ``data`` begin."""
        if not _has_lines(data):
            return cls([0], [0])
        in_data, in_joined = [], []
        at, length = 0, 0
        for line in _lines(data):
            in_data.append(at + len(line) - len(line.lstrip(_SPACE)))
            in_joined.append(length)
            at += len(line) + 1
            length += len(line.strip(_SPACE))
        return cls(in_data, in_joined)

    def at(self, position: int) -> int:
        """Return the position in the data of the character at ``position`` of the joined lines."""
        line = bisect_right(self.in_joined, position) - 1
        return self.in_data[line] + position - self.in_joined[line]


def _has_lines(data: str) -> bool:
    return "\n" in data or "\r" in data


def _lines(data: str) -> list[str]:
    return data.replace("\r", "\n").split("\n")


def _runs_of(forms: Iterable[str], data: str) -> Iterator[tuple[int, int, str]]:
    """Yield the occurrences of forms, longer ones first. Most of those within one of a longer form are left out.

    So the work hardly grows with the number of values that contain each other.
    """
    starts: list[int] = []
    ends: list[int] = []
    waiting: list[tuple[int, int]] = []
    for form in sorted(forms, key=len, reverse=True):
        for start, end in _runs(form, data, starts, ends):
            waiting.append((start, end))
            yield start, end, form
        if len(waiting) > len(starts):  # so that all merges together are hardly more work than the last one
            outer: list[tuple[int, int]] = []
            for start, end in sorted([*zip(starts, ends, strict=True), *waiting]):
                if outer and start < outer[-1][1]:
                    outer[-1] = outer[-1][0], max(end, outer[-1][1])
                else:
                    outer.append((start, end))
            starts, ends, waiting = [one[0] for one in outer], [one[1] for one in outer], []


def _runs(form: str, data: str, starts: Sequence[int], ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of all occurrences, except of those within the spans with these starts and ends.

    Those that overlap in equal steps, as "aaaa" in "aaaaa", are one.
    """
    start = data.find(form)
    while start >= 0:
        end = start + len(form)
        outer = bisect_right(starts, start) - 1
        if outer >= 0 and end <= ends[outer]:
            start = data.find(form, max(start, ends[outer] - len(form)) + 1)
            continue
        following = data.find(form, start + 1)
        if 0 < following < end:
            step = re.escape(form[start - following :])
            end = re.compile(f"(?:{step})*+").match(data, end).end()  # type: ignore[union-attr]  # it may be empty
            following = data.find(form, end - len(form) + 1)
        yield start, end
        start = following
