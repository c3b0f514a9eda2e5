"""Find which of many forms occur in data, in a time that hardly depends on their number.

Data and forms are strings with one character per byte (of UTF-8, for text), which Python searches faster than bytes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from attrs import define, field

# Up to this number of forms, searching for one after the other is faster than looking up parts of the data.
_FEW = 128
# Many forms contain one of these characters, and most data does not.
_MARKS = ("\\", "%", "&")
_SPACE = " \t"

# Shorter forms that are broken into lines would occur by chance.
_MIN_BROKEN = 11


@define(eq=False)
class _Forms:
    """Forms of at least ``width + stride - 1`` characters.

    Each form is indexed by its parts of ``width`` characters at ``stride`` consecutive positions. One of these is a
    multiple of ``stride`` wherever the form occurs, so only those parts of the data are looked up. Forms may be added
    while another thread searches: lists only grow, and no dictionary is iterated.
    """

    width: int
    stride: int
    count: int = field(default=0, init=False)
    _by_mark: Sequence[tuple[str, list[str]]] = field(init=False)
    _by_part: dict[int, list[str]] = field(factory=dict, init=False)

    @_by_mark.default
    def _no_forms(self) -> Sequence[tuple[str, list[str]]]:
        return [(mark, []) for mark in (*_MARKS, "")]

    def add(self, form: str) -> None:
        """Add a form."""
        next(forms for mark, forms in self._by_mark if mark in form).append(form)
        raw = form.encode("latin-1")
        # The parts are from its middle, since keys of one kind often begin or end alike.
        middle = (len(raw) - self.width - self.stride + 1) // 2
        for start in range(middle, middle + self.stride):
            part = int.from_bytes(raw[start : start + self.width], sys.byteorder)
            self._by_part.setdefault(part, []).append(form)
        self.count += 1

    def find(self, data: str) -> list[str]:
        """Return the forms that occur in ``data``."""
        if self.count <= _FEW:
            return [form for mark, forms in self._by_mark if mark in data for form in forms if form in data]
        raw = memoryview(data.encode("latin-1"))
        parts: set[int] = set()
        for start in range(0, self.width, self.stride):
            size = max(0, len(raw) - start) // self.width * self.width
            parts |= self._by_part.keys() & raw[start : start + size].cast("Q" if self.width == 8 else "I")
        return list({form for part in parts for form in self._by_part[part] if form in data})


@define(eq=False)
class FormSearch:
    """The search for the forms of all known values. Long forms are found even if they are broken into lines."""

    _short: _Forms = field(factory=lambda: _Forms(width=4, stride=1), init=False)
    _long: _Forms = field(factory=lambda: _Forms(width=8, stride=_MIN_BROKEN - 7), init=False)

    def add(self, form: str) -> None:
        """Add a form of at least four characters. The result of ``unbroken`` has been applied to it."""
        (self._long if is_long(form) else self._short).add(form)

    def find(self, data: str) -> list[str]:
        """Return the forms that occur in ``data``. A form may be repeated."""
        found = self._short.find(data) if self._short.count else []
        if self._long.count:
            found += self._long.find(_joined(data) if "\n" in data or "\r" in data else data)
            if "\\" in data:
                found += self._long.find(_joined(_unescaped(data)))
        return found

    def spans(self, data: str) -> Iterator[tuple[int, int, str]]:
        """Yield the start and end of all occurrences, with their forms. Those that overlap may be yielded as one."""
        for form in self._short.find(data):
            yield from ((start, end, form) for start, end in _runs(form, data))
        for version in (data, _unescaped(data)):
            joined = _joined(version)
            kept: Sequence[int] | None = None
            for form in self._long.find(joined):
                kept = kept or _kept(version)
                yield from ((kept[start], kept[end - 1] + 1, form) for start, end in _runs(form, joined))


def unbroken(form: str) -> str:
    """Return a form as it is searched for: if it is long, without line breaks and the white space around them."""
    return _joined(f"{form}\n") if is_long(form) else form


def is_long(form: str) -> bool:
    """Return whether a form is also found if it is broken into lines."""
    return len(form) >= _MIN_BROKEN and len(_joined(f"{form}\n")) >= _MIN_BROKEN


def _unescaped(data: str) -> str:
    """Return the data with line breaks instead of those escaped in JSON, in the same length.

    Other backslashes become spaces, since JSON in JSON escapes a line break more than once.
    """
    return data.replace("\\r", " \n").replace("\\n", " \n").replace("\\", " ")


def _joined(data: str) -> str:
    """Return the data with all lines joined, without the white space around line breaks."""
    lines = _lines(data)
    return data if len(lines) == 1 else "".join([line.strip(_SPACE) for line in lines])


def _kept(data: str) -> Sequence[int]:
    """Return the positions in ``data`` of the characters of ``_joined(data)``."""
    lines = _lines(data)
    if len(lines) == 1:
        return range(len(data))
    kept: list[int] = []
    at = 0
    for line in lines:
        start = at + len(line) - len(line.lstrip(_SPACE))
        kept += range(start, start + len(line.strip(_SPACE)))
        at += len(line) + 1
    return kept


def _lines(data: str) -> list[str]:
    return data.replace("\r", "\n").split("\n")


def _runs(form: str, data: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of all occurrences. Those that overlap in equal steps, as "aaaa" in "aaaaa", are one."""
    start = data.find(form)
    while start >= 0:
        end = start + len(form)
        following = data.find(form, start + 1)
        if 0 < following < end:
            step = re.escape(form[start - following :])
            end = re.compile(f"(?:{step})*+").match(data, end).end()  # type: ignore[union-attr]  # it may be empty
            following = data.find(form, end - len(form) + 1)
        yield start, end
        start = following
