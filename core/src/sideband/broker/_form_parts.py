"""Find the forms of which a part occurs in data, in a time that hardly depends on their number.

The parts are looked up by an automaton if ``ahocorasick-rs`` is installed, and in a dictionary otherwise. Both may find
too many forms, and never too few. Forms may be added while other threads search: what they use either grows or is
replaced as a whole.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from attrs import define, field

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

# The automaton has no use for more of a form: longer parts hardly occur by chance more rarely, and take more memory.
_PART = 16
# Parts are from the middle, since values of one kind often begin or end alike. If even this many forms have a part in
# common, as addresses of databases on one server do, another one is taken: each form of a part that occurs is searched.
_COMMON = 16
# So many other parts are tried at most, spread over the form: that of a file has many.
_TRIED = 64
# Each match is a tuple in a list, so data is searched piece by piece. Data with more matches than characters repeats
# itself, so only those of its pieces are searched that differ.
_PIECE = 4_096
_DENSE_PIECE = 256


class FormParts(Protocol):
    """The index of the parts of forms, which are strings with one character per byte."""

    def add(self, forms: Iterable[str]) -> None:
        """Add forms of at least four characters. One thread at a time may do this."""

    def candidates(self, data: str) -> Sequence[str]:
        """Return all forms that may occur in ``data``. A form may be repeated."""


def form_parts() -> FormParts:
    """Return an empty index, with an automaton if possible."""
    try:
        from ahocorasick_rs import BytesAhoCorasick  # noqa: PLC0415  a host without secrets does not load it
    except ImportError:
        return PartTable()
    return PartAutomata(BytesAhoCorasick)


@define(eq=False)
class PartAutomata:
    """The index as automata, each at least twice as large as the next one, so that adding forms rebuilds few parts."""

    _build: type[BytesAhoCorasick]
    _automata: Sequence[tuple[BytesAhoCorasick, list[bytes]]] = field(default=(), init=False)
    _by_part: dict[bytes, list[str]] = field(factory=dict, init=False)

    def add(self, forms: Iterable[str]) -> None:
        """See ``FormParts.add``."""
        parts: list[bytes] = []
        for form in forms:
            raw = form.encode("latin-1")
            start = max(0, len(raw) - _PART) // 2
            part = raw[start : start + _PART]
            if len(self._by_part.get(part, ())) >= _COMMON:
                known = self._by_part
                windows = [raw[start : start + _PART] for start in _starts(len(raw), _PART)]
                part = min(windows, key=lambda window: len(known.get(window, ())))
            if part in self._by_part:
                self._by_part[part].append(form)
            else:
                self._by_part[part] = [form]
                parts.append(part)
        automata = list(self._automata)
        while parts and automata and len(automata[-1][1]) < 2 * len(parts):
            parts = automata.pop()[1] + parts
        if parts:
            self._automata = (*automata, (self._build(parts), parts))

    def candidates(self, data: str) -> Sequence[str]:
        """See ``FormParts.candidates``."""
        raw = data.encode("latin-1")
        found: set[bytes] = set()
        for automaton, parts in self._automata:
            for start in range(0, len(raw), _PIECE):
                piece = raw[start : start + _PIECE + _PART - 1] if len(raw) > _PIECE else raw
                if matches := automaton.find_matches_as_indexes(piece, overlapping=True):
                    found |= {parts[number] for number in {match[0] for match in matches}}
                    if len(matches) > _PIECE:
                        found |= _found_in_dense(automaton, parts, raw[start + _PIECE :])
                        break
        return [form for part in found for form in self._by_part[part]] if found else ()


@define(eq=False)
class _FormTable:
    """The forms of at least ``width + stride - 1`` characters in a table.

    Each form is indexed by its parts of ``width`` characters at ``stride`` consecutive positions. One of these is a
    multiple of ``stride`` wherever the form occurs, so only those parts of the data are looked up.
    """

    width: int
    stride: int
    by_part: dict[int, list[str]] = field(factory=dict, init=False)

    @property
    def shortest(self) -> int:
        """The length from which forms can be added."""
        return self.width + self.stride - 1

    def add(self, form: str) -> None:
        """Add a form."""
        raw = form.encode("latin-1")
        start = (len(raw) - self.shortest) // 2
        if self._uses(raw, start) >= _COMMON:
            start = min(_starts(len(raw), self.shortest), key=lambda start: self._uses(raw, start))
        for at in range(start, start + self.stride):
            self.by_part.setdefault(self._part(raw, at), []).append(form)

    def _part(self, raw: bytes, start: int) -> int:
        return int.from_bytes(raw[start : start + self.width], sys.byteorder)

    def _uses(self, raw: bytes, start: int) -> int:
        return len(self.by_part.get(self._part(raw, start), ()))

    def found(self, raw: memoryview) -> set[int]:
        """Return the parts that occur in the data."""
        parts: set[int] = set()
        for start in range(0, self.width, self.stride):
            size = max(0, len(raw) - start) // self.width * self.width
            parts |= self.by_part.keys() & raw[start : start + size].cast("Q" if self.width == 8 else "I")
        return parts


@define(eq=False)
class PartTable:
    """The index in pure Python, as tables for long, shorter and the shortest forms."""

    _tables: Sequence[_FormTable] = field(
        factory=lambda: (_FormTable(8, 4), _FormTable(4, 4), _FormTable(4, 1)), init=False
    )

    def add(self, forms: Iterable[str]) -> None:
        """See ``FormParts.add``."""
        for form in forms:
            next(table for table in self._tables if len(form) >= table.shortest).add(form)

    def candidates(self, data: str) -> Sequence[str]:
        """See ``FormParts.candidates``."""
        raw = memoryview(data.encode("latin-1"))
        tables = [table for table in self._tables if table.by_part]
        return [form for table in tables for part in table.found(raw) for form in table.by_part[part]]


def _starts(length: int, size: int) -> Sequence[int]:
    """Return positions of parts of ``size``, spread evenly. Every character is in one unless there are too many."""
    last = max(0, length - size)
    return (*range(0, last, max(size // 2, last // _TRIED)), last)


def _found_in_dense(automaton: BytesAhoCorasick, parts: Sequence[bytes], raw: bytes) -> set[bytes]:
    """Return the parts that occur in data with many matches."""
    pieces = {raw[start : start + _DENSE_PIECE + _PART - 1] for start in range(0, len(raw), _DENSE_PIECE)}
    return {parts[match[0]] for piece in pieces for match in automaton.find_matches_as_indexes(piece, overlapping=True)}
