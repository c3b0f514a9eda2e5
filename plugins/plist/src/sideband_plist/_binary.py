"""Reads property lists in the binary form, and counts each object wherever it stands, before it is made.

An object of that form has a number, and a table says where it begins. So little data can hold much: one object stands
in many places, many objects begin at one place, and an object may hold itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from attrs import define, field

from ._budget import PlistBudget, Pulse
from ._config import Config
from ._errors import PlistRefused, PlistSyntax, PlistTooLarge, PlistValue
from ._values import UID, date_value, integer_value, object_value, real_value

MAGIC = b"bplist00"
_TRAILER = struct.Struct(">6xBBQQQ")
_EPOCH = datetime(2001, 1, 1)  # noqa: DTZ001  dates of this form have no zone
_NULL, _TRUE, _DATE, _DATA, _ASCII, _UTF16, _ARRAY, _DICT = 0x00, 0x09, 0x33, 0x40, 0x50, 0x60, 0xA0, 0xD0
# the first byte of an object says what it is, and for these how many bytes follow
_SIZES = {_NULL: 0, 0x08: 0, _TRUE: 0, 0x22: 4, 0x23: 8, _DATE: 8}
_SIZES |= {0x10 + power: 1 << power for power in range(5)}
_SIZES |= {0x80 + more: 1 + more for more in range(8)}
_DECODERS: dict[int, Callable[[bytes], Any]] = {
    0x10: lambda body: integer_value(int.from_bytes(body, "big", signed=len(body) >= 8)),
    0x20: lambda body: real_value(struct.unpack(">f" if len(body) == 4 else ">d", body)[0]),
    0x80: lambda body: {UID: int.from_bytes(body, "big")},
    _DATA: bytes,
    _ASCII: lambda body: body.decode("ascii"),
    _UTF16: lambda body: body.decode("utf-16-be"),
}


def read_binary(data: bytes, config: Config, pulse: Pulse, *, typed: bool) -> Any:
    """The value of a property list.

    Args:
        data: the document, which begins with ``MAGIC``.
        config: the limits.
        pulse: called now and then; raises if the result is not waited for any more.
        typed: whether dates say that they are dates.

    Raises:
        PlistSyntax: it is damaged.
        PlistRefused: an object holds itself.
        PlistTooLarge: it is over the limits.
        PlistValue: it holds what JSON can't carry.
    """
    end = len(data) - _TRAILER.size
    if end < len(MAGIC):
        raise PlistSyntax("it ends before its end")
    offset_size, reference_size, count, top, table = _TRAILER.unpack(data[end:])
    if not 1 <= offset_size <= 8 or not 1 <= reference_size <= 8:
        raise PlistSyntax("its offsets or references have an impossible length")
    if table > end or count > (end - table) // offset_size:
        raise PlistSyntax("its table lies outside of it")
    if count > config.max_values:
        raise PlistTooLarge(f"it holds more than {config.max_values:,} values")
    budget = PlistBudget(config, pulse)
    budget.values(1)
    offsets = _integers(data[table : table + count * offset_size], offset_size)
    return _BinaryReader(data, table, offsets, reference_size, budget, typed).read(top)


def _integers(raw: bytes, size: int) -> list[int]:
    return [int.from_bytes(raw[at : at + size], "big") for at in range(0, len(raw), size)]


@define(eq=False)
class _BinaryReader:
    """One document. What an object holds lies between the beginning and the table."""

    _data: bytes
    _end: int
    _offsets: list[int]
    _reference_size: int
    _budget: PlistBudget
    _typed: bool
    _within: set[int] = field(factory=set, init=False)
    """The lists and objects around what is read now."""

    def read(self, number: int) -> Any:
        """The object of this number, and what it holds. It was counted by what holds it."""
        self._budget.depth(len(self._within) + 1)
        if number >= len(self._offsets):
            raise PlistSyntax("a reference leads to nothing")
        at = self._offsets[number]
        token = self._take(at, 1)[0]
        if token in _SIZES:
            return self._leaf(token, self._take(at + 1, _SIZES[token]))
        kind = token & 0xF0
        if kind not in (_DATA, _ASCII, _UTF16, _ARRAY, _DICT):
            raise PlistSyntax("it holds an object of a kind that does not exist")
        start, length = self._length(at, token & 0x0F)
        if kind in (_ARRAY, _DICT):
            return self._container(number, kind, start, length)
        return self._leaf(kind, self._take(start, 2 * length if kind == _UTF16 else length, counted=True))

    def _leaf(self, token: int, body: bytes) -> Any:
        if token == _NULL:
            raise PlistValue("it holds a null", hint="property lists have none")
        if token < 0x10:
            return token == _TRUE
        if token == _DATE:
            return self._date(body)
        try:
            return _DECODERS[token & 0xF0](body)
        except UnicodeDecodeError:
            raise PlistSyntax("a text is not encoded as it says") from None

    def _date(self, body: bytes) -> Any:
        try:
            return date_value(_EPOCH + timedelta(seconds=struct.unpack(">d", body)[0]), typed=self._typed)
        except (OverflowError, ValueError):
            raise PlistValue("a date lies before the year 1 or after the year 9999", hint="it can't be read") from None

    def _container(self, number: int, kind: int, start: int, length: int) -> Any:
        if number in self._within:
            raise PlistRefused("an object holds itself")
        count = 2 * length if kind == _DICT else length
        self._budget.values(count)
        references = _integers(self._take(start, count * self._reference_size), self._reference_size)
        self._within.add(number)
        held = [self.read(one) for one in references]
        self._within.remove(number)
        return held if kind == _ARRAY else object_value(held[:length], held[length:])

    def _length(self, at: int, low: int) -> tuple[int, int]:
        """Where what an object holds begins, and the length that stands in front of it."""
        if low < 0x0F:
            return at + 1, low
        token = self._take(at + 1, 1)[0]
        if token & 0xFC != 0x10:
            raise PlistSyntax("a length is no whole number")
        size = 1 << (token & 0x03)
        return at + 2 + size, int.from_bytes(self._take(at + 2, size), "big")

    def _take(self, at: int, size: int, *, counted: bool = False) -> bytes:
        """Bytes at a place. Places and lengths may be any number."""
        if at < len(MAGIC) or at + size > self._end:
            raise PlistSyntax("an object lies outside of it")
        if counted:
            self._budget.size(size)
        return self._data[at : at + size]
