"""Reads property lists in the binary form.

An object of that form is named by its place, so that little data can hold much: a list of one long text many times,
lists of lists of lists, objects that lie over one another, and objects that hold themselves. Each is therefore counted
where it is used, and nothing is read before that.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import define, field

from ._budget import Budget
from ._errors import PlistRefused, PlistSyntax, PlistTooLarge, PlistValue
from ._values import check_object, date_value, integer_value, real_value, uid_value

__all__ = ["MAGIC", "read_binary"]

MAGIC = b"bplist00"
_TRAILER = 32
_EPOCH = datetime(2001, 1, 1, tzinfo=UTC)
_LONGEST_INTEGER = 4  # 2 to the power of it: 16 bytes, as some write whole numbers above 63 bits
_FIXED = {0x08: False, 0x09: True}


def read_binary(data: bytes, budget: Budget, *, typed: bool) -> Any:
    """The value of a property list.

    Args:
        data: the document, which begins with ``MAGIC``.
        budget: what it may take.
        typed: whether dates say that they are dates.

    Raises:
        PlistSyntax: it is damaged.
        PlistRefused: an object holds itself.
        PlistTooLarge: it is over the budget.
        PlistValue: it holds what JSON can't carry.
    """
    if len(data) < len(MAGIC) + _TRAILER:
        raise PlistSyntax("it ends before its end")
    offset_size, reference_size, count, top, table = struct.unpack(">6xBBQQQ", data[-_TRAILER:])
    if not 1 <= offset_size <= 8 or not 1 <= reference_size <= 8:
        raise PlistSyntax("its numbers have a length that there is not")
    end = len(data) - _TRAILER
    if table > end or count > (end - table) // offset_size:
        raise PlistSyntax("its table lies outside of it")
    if count > budget.config.max_values:
        raise PlistTooLarge(f"it holds more than {budget.config.max_values:,} values")
    return _Reader(data, table, offset_size, reference_size, count, budget, typed).read(top)


@define(eq=False)
class _Reader:
    """One document. What an object holds lies between the beginning and the table of places."""

    _data: bytes
    _table: int
    _offset_size: int
    _reference_size: int
    _count: int
    _budget: Budget
    _typed: bool
    _within: set[int] = field(factory=set, init=False)
    """The lists and objects around what is read now."""

    def read(self, reference: int) -> Any:
        """The object of this number, whatever it holds included. As deep as the budget lets it be."""
        self._budget.value(len(self._within) + 1)
        end = self._table + self._count * self._offset_size
        at = self._integer(self._table + reference * self._offset_size, self._offset_size, end)
        token = self._take(at, 1)[0]
        kind, low = token & 0xF0, token & 0x0F
        if token in _FIXED:
            return _FIXED[token]
        if token == 0:
            raise PlistValue("it holds a null", hint="property lists have none")
        if kind in (0x10, 0x20, 0x80) or token == 0x33:
            return self._number(at, kind, low)
        if kind in (0x40, 0x50, 0x60):
            return self._text(at, kind, low)
        if kind in (0xA0, 0xD0):
            return self._container(reference, at, kind, low)
        raise PlistSyntax("it holds an object of a kind that there is not")

    def _number(self, at: int, kind: int, low: int) -> Any:
        if kind == 0x80:
            if low > 7:
                raise PlistSyntax("a reference is too long")
            return uid_value(self._integer(at + 1, low + 1))
        if kind == 0x10:
            if low > _LONGEST_INTEGER:
                raise PlistSyntax("a whole number is too long")
            # up to 4 bytes they have no sign
            return integer_value(int.from_bytes(self._take(at + 1, 1 << low), "big", signed=low >= 3))
        if low not in (2, 3):
            raise PlistSyntax("a number has a length that there is not")
        number: float = struct.unpack(">f" if low == 2 else ">d", self._take(at + 1, 1 << low))[0]
        if kind == 0x20:
            return real_value(number)
        try:
            return date_value(_EPOCH + timedelta(seconds=number), typed=self._typed)
        except (OverflowError, ValueError):
            raise PlistValue("a date lies before the year 1 or after the year 9999", hint="it can't be read") from None

    def _text(self, at: int, kind: int, low: int) -> str | bytes:
        at, length = self._length(at, low)
        raw = self._take(at, length * 2 if kind == 0x60 else length, counted=True)
        if kind == 0x40:
            return raw
        try:
            return raw.decode("ascii" if kind == 0x50 else "utf-16-be")
        except UnicodeDecodeError:
            raise PlistSyntax("a text is not encoded as it says") from None

    def _container(self, reference: int, at: int, kind: int, low: int) -> Any:
        if reference in self._within:
            raise PlistRefused("an object holds itself")
        at, length = self._length(at, low)
        wanted = length * (2 if kind == 0xD0 else 1)
        if wanted > self._budget.config.max_values:
            raise PlistTooLarge(f"it holds more than {self._budget.config.max_values:,} values")
        size = self._reference_size
        raw = self._take(at, wanted * size)
        references = [int.from_bytes(raw[place : place + size], "big") for place in range(0, len(raw), size)]
        self._within.add(reference)
        try:
            if kind == 0xA0:
                return [self.read(one) for one in references]
            return self._object(references[:length], references[length:])
        finally:
            self._within.discard(reference)

    def _object(self, keys: list[int], values: list[int]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in zip(keys, values, strict=True):
            name = self.read(key)
            if not isinstance(name, str):
                raise PlistSyntax("a key is no text")
            if name in found:
                raise PlistSyntax("an object has the same key twice")
            found[name] = self.read(value)
        return check_object(found)

    def _length(self, at: int, low: int) -> tuple[int, int]:
        """Where what an object holds begins, and its length."""
        if low != 0x0F:
            return at + 1, low
        token = self._take(at + 1, 1)[0]
        if token & 0xF0 != 0x10 or token & 0x0F > 3:
            raise PlistSyntax("a length is no whole number")
        size = 1 << (token & 0x0F)
        return at + 2 + size, self._integer(at + 2, size)

    def _integer(self, at: int, size: int, end: int | None = None) -> int:
        return int.from_bytes(self._take(at, size, end=end), "big")

    def _take(self, at: int, size: int, *, counted: bool = False, end: int | None = None) -> bytes:
        """Bytes at a place. Nothing is counted on: places and lengths are whatever somebody wrote."""
        if at < len(MAGIC) or at + size > (self._table if end is None else end):
            raise PlistSyntax("an object lies outside of it")
        if counted:
            self._budget.size(size)
        return self._data[at : at + size]
