"""Parses property lists in the binary format, and counts each occurrence of an object before creating it.

Each object has a number, and a table contains the offset of each object. A small document can therefore expand to a
large value: an object can have many references, objects can share an offset, and an object can contain itself.
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
_EPOCH = datetime(2001, 1, 1)  # noqa: DTZ001  dates of this format have no time zone
_NULL, _TRUE, _DATE, _DATA, _ASCII, _UTF16, _ARRAY, _DICT = 0x00, 0x09, 0x33, 0x40, 0x50, 0x60, 0xA0, 0xD0
# the number of bytes that follow the first byte of an object, for types of fixed size
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
    """Return the value of a property list.

    Args:
        data: the document, which begins with ``MAGIC``.
        config: the limits.
        pulse: called regularly; raises an exception to stop parsing when the call is cancelled.
        typed: whether to return dates as typed objects.

    Raises:
        PlistSyntax: if it is damaged.
        PlistRefused: if an object contains itself.
        PlistTooLarge: if it exceeds the limits.
        PlistValue: if it contains values that JSON does not support.
    """
    body_end = len(data) - _TRAILER.size
    if body_end < len(MAGIC):
        raise PlistSyntax("truncated document")
    offset_size, reference_size, count, root, table = _TRAILER.unpack(data[body_end:])
    if not 1 <= offset_size <= 8 or not 1 <= reference_size <= 8:
        raise PlistSyntax("invalid size of offsets or references")
    if table > body_end or count > (body_end - table) // offset_size:
        raise PlistSyntax("offset table is out of bounds")
    if count > config.max_values:
        raise PlistTooLarge(f"more than {config.max_values:,} values")
    budget = PlistBudget(config, pulse)
    budget.values(1)
    offsets = _integers(data[table : table + count * offset_size], offset_size)
    return _BinaryReader(data, table, offsets, reference_size, budget, typed).read(root)


def _integers(raw: bytes, size: int) -> list[int]:
    return [int.from_bytes(raw[at : at + size], "big") for at in range(0, len(raw), size)]


@define(eq=False)
class _BinaryReader:
    """Parses one document. The content of objects must be between the header and the table."""

    _data: bytes
    _end: int
    _offsets: list[int]
    _reference_size: int
    _budget: PlistBudget
    _typed: bool
    _ancestors: set[int] = field(factory=set, init=False)
    """The numbers of the containers that are being read."""

    def read(self, number: int) -> Any:
        """Return an object with its content. The caller has already counted it."""
        self._budget.depth(len(self._ancestors) + 1)
        if number >= len(self._offsets):
            raise PlistSyntax("reference to an unknown object")
        at = self._offsets[number]
        token = self._take(at, 1)[0]
        if token in _SIZES:
            return self._leaf(token, self._take(at + 1, _SIZES[token]))
        kind = token & 0xF0
        if kind not in (_DATA, _ASCII, _UTF16, _ARRAY, _DICT):
            raise PlistSyntax("unknown type of object")
        start, length = self._length(at, token & 0x0F)
        if kind in (_ARRAY, _DICT):
            return self._container(number, kind, start, length)
        return self._leaf(kind, self._take(start, 2 * length if kind == _UTF16 else length, counted=True))

    def _leaf(self, token: int, body: bytes) -> Any:
        if token == _NULL:
            raise PlistValue("property list contains null", hint="remove it; property lists do not support null")
        if token < 0x10:
            return token == _TRUE
        if token == _DATE:
            return self._date(body)
        try:
            return _DECODERS[token & 0xF0](body)
        except UnicodeDecodeError:
            raise PlistSyntax("text is not valid in its encoding") from None

    def _date(self, body: bytes) -> Any:
        try:
            return date_value(_EPOCH + timedelta(seconds=struct.unpack(">d", body)[0]), typed=self._typed)
        except (OverflowError, ValueError):
            raise PlistValue("date is not between the years 1 and 9999", hint="correct the date") from None

    def _container(self, number: int, kind: int, start: int, length: int) -> Any:
        if number in self._ancestors:
            raise PlistRefused("an object contains itself")
        count = 2 * length if kind == _DICT else length
        self._budget.values(count)
        references = _integers(self._take(start, count * self._reference_size), self._reference_size)
        self._ancestors.add(number)
        content = [self.read(one) for one in references]
        self._ancestors.remove(number)
        return content if kind == _ARRAY else object_value(content[:length], content[length:])

    def _length(self, at: int, low: int) -> tuple[int, int]:
        """Return the start of an object's content, and the length from its header."""
        if low < 0x0F:
            return at + 1, low
        token = self._take(at + 1, 1)[0]
        if token & 0xFC != 0x10:
            raise PlistSyntax("length is not an integer")
        size = 1 << (token & 0x03)
        return at + 2 + size, int.from_bytes(self._take(at + 2, size), "big")

    def _take(self, at: int, size: int, *, counted: bool = False) -> bytes:
        """Return bytes at an offset. Offset and size come from the document and may be any number."""
        if at < len(MAGIC) or at + size > self._end:
            raise PlistSyntax("object is out of bounds")
        if counted:
            self._budget.size(size)
        return self._data[at : at + size]
