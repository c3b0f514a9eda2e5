"""Keeps the newest output of a background program, as it arrived, and counts what it no longer has."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Mapping

import anyio
from attrs import define, field, frozen
from sideband.ops import RedactedText

# What an empty part costs. Without it, many tiny parts would exceed the memory that the limit allows.
_PART_BYTES = 128
_LONGEST_PART = 65_536


@frozen
class LogPart:
    """A part of the output.

    Attributes:
        stream: ``stdout`` or ``stderr``.
        data: its bytes.
    """

    stream: str
    data: bytes


@frozen
class LogRange:
    """A range of the output.

    Attributes:
        parts: the parts, oldest first.
        offset: the offset of the first byte.
        next: the offset after the last byte.
        omitted: the number of bytes before ``offset`` that were requested and are no longer kept.
    """

    parts: tuple[LogPart, ...]
    offset: int
    next: int
    omitted: int


@define(eq=False)
class OutputLog:
    """The output of both streams of one program, redacted. The oldest parts are dropped.

    Args:
        limit: the number of bytes to keep, including a small amount for each part.
        texts: the redaction of each stream.

    Attributes:
        size: the number of bytes that were added, which is the offset of the next one.
    """

    limit: int
    texts: Mapping[str, RedactedText] = field(repr=False)
    size: int = field(init=False, default=0)
    _parts: deque[tuple[str, bytearray]] = field(init=False, factory=deque, repr=False)
    _held: int = field(init=False, default=0)
    _first: int = field(init=False, default=0)
    _decoders: dict[str, codecs.IncrementalDecoder] = field(init=False, factory=dict, repr=False)
    _changed: anyio.Event = field(init=False, factory=anyio.Event, repr=False)

    def feed(self, stream: str, data: bytes) -> None:
        """Add output of a stream."""
        # A character that is split over reads is one part. Bytes that are not UTF-8 are kept as they are.
        decoder = self._decoders.setdefault(stream, codecs.getincrementaldecoder("utf-8")("surrogateescape"))
        self._add(stream, self.texts[stream].feed(decoder.decode(data)))

    def end(self) -> None:
        """Add what was held back, after the end of both streams."""
        for stream, text in self.texts.items():
            rest = self._decoders[stream].decode(b"", final=True) if stream in self._decoders else ""
            self._add(stream, text.feed(rest) + text.end())
        self._changed.set()

    def read(self, offset: int, maximum: int) -> LogRange:
        """Return what is kept from an offset on.

        Args:
            offset: the offset of the first byte. Output that does not exist yet is not waited for.
            maximum: the maximum number of bytes.
        """
        wanted = min(offset, self.size)
        start = max(wanted, self._first)
        found: list[LogPart] = []
        at, room = self._first, maximum
        for stream, data in self._parts:
            if at + len(data) > start and room > 0:
                begin = max(0, start - at)
                piece = _whole(data, begin, begin + room) or bytes(data[begin : begin + room])
                found.append(LogPart(stream, piece))
                room = room - len(piece) if begin + len(piece) == len(data) else 0
            at += len(data)
        return LogRange(tuple(found), start, start + sum(len(one.data) for one in found), start - wanted)

    async def wait(self) -> None:
        """Wait until output is added, or the end."""
        await self._changed.wait()

    def _add(self, stream: str, text: str) -> None:
        if not text:
            return
        data = text.encode("utf-8", "surrogateescape")
        self.size += len(data)
        if self._parts and self._parts[-1][0] == stream and len(self._parts[-1][1]) < _LONGEST_PART:
            self._parts[-1][1].extend(data)
            self._held += len(data)
        else:
            self._parts.append((stream, bytearray(data)))
            self._held += len(data) + _PART_BYTES
        while self._held > self.limit:
            self._drop(self._held - self.limit)
        self._changed.set()
        self._changed = anyio.Event()

    def _drop(self, excess: int) -> None:
        """Drop the oldest part, or its beginning."""
        _, data = self._parts[0]
        if excess < len(data):
            del data[:excess]
            self._held -= excess
            self._first += excess
            return
        self._parts.popleft()
        self._held -= len(data) + _PART_BYTES
        self._first += len(data)


def _whole(data: bytearray, begin: int, end: int) -> bytes:
    """Return a range of a part without an incomplete character at its end, unless the part ends there."""
    if end >= len(data):
        return bytes(data[begin:])
    # A character has at most three continuation bytes.
    for cut in range(end, max(begin, end - 4), -1):
        if data[cut] & 0xC0 != 0x80:
            return bytes(data[begin:cut])
    return bytes(data[begin:end])
