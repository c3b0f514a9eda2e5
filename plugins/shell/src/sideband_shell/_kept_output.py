"""Keeps the beginning and the end of a program's output, and counts the bytes between them."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from attrs import define, field

# Bytes kept on the omitted side of each cut, to find secrets that a cut would split. Secrets are at most this long.
_MARGIN = 4_096


@define(eq=False)
class KeptOutput:
    r"""The output of one stream, in bounded memory.

    Args:
        limit: the number of bytes to keep: half from the beginning, half from the end.

    Example:
        >>> kept = KeptOutput(limit=4)
        >>> kept.feed(b"abcdefgh")
        >>> kept.finish()
        Printed(content='ab\n[… 4 bytes left out …]\ngh', omitted=4)
    """

    limit: int
    total: int = field(init=False, default=0)
    _head: bytearray = field(init=False, factory=bytearray)
    _after_head: bytearray = field(init=False, factory=bytearray)
    _tail: bytearray = field(init=False, factory=bytearray)

    def feed(self, data: bytes) -> None:
        """Add output."""
        self.total += len(data)
        room = self.limit - self.limit // 2 - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._after_head += data[: _MARGIN - len(self._after_head)]
        held = self.limit // 2 + _MARGIN
        self._tail += data[-held:]
        del self._tail[: max(0, len(self._tail) - held)]

    def finish(self, is_cut: Callable[[bytes, bytes], bool] = lambda _before, _after: False) -> Printed:
        """Return the kept output.

        Args:
            is_cut: returns whether a secret begins in its first argument and ends in its second.
        """
        head, tail = bytes(self._head), bytes(self._tail)
        excess = max(0, len(tail) - self.limit // 2)
        before, tail = tail[:excess], tail[excess:]
        omitted = self.total - len(head) - len(tail)
        if omitted:
            head = _without_end(head, bytes(self._after_head), is_cut)
            tail = _without_beginning(before, tail, is_cut)
            omitted = self.total - len(head) - len(tail)
        if not omitted:
            return Printed(readable(head + tail), 0)
        text_head, text_tail = _whole_start(head), _whole_end(tail)
        if text_head is None or text_tail is None:
            return Printed(head + _gap(omitted).encode() + tail, omitted)
        kept = len(text_head.encode()) + len(text_tail.encode())
        return Printed(text_head + _gap(self.total - kept) + text_tail, self.total - kept)


@define
class Printed:
    """The content of a stream in the result.

    Args:
        content: text, or bytes if it is not UTF-8; a line between beginning and end states how much was left out.
        omitted: the number of bytes left out.
    """

    content: str | bytes
    omitted: int


def _without_end(head: bytes, after: bytes, is_cut: Callable[[bytes, bytes], bool]) -> bytes:
    """Shorten the beginning until its end splits no secret."""
    at = len(head)
    while at and is_cut(head[max(0, at - _MARGIN) : at], (head[at:] + after)[:_MARGIN]):
        at -= 1
    return head[:at]


def _without_beginning(before: bytes, tail: bytes, is_cut: Callable[[bytes, bytes], bool]) -> bytes:
    """Shorten the end until its beginning splits no secret."""
    at = 0
    while at < len(tail) and is_cut((before + tail[:at])[-_MARGIN:], tail[at : at + _MARGIN]):
        at += 1
    return tail[at:]


def _gap(omitted: int) -> str:
    return f"\n[… {omitted:,} bytes left out …]\n"


def readable(data: bytes) -> str | bytes:
    """Return text, or bytes that are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _whole_start(data: bytes) -> str | None:
    """Decode text without an incomplete character at its end; return ``None`` if it is not UTF-8."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return None


def _whole_end(data: bytes) -> str | None:
    """Decode text without an incomplete character at its beginning; return ``None`` if it is not UTF-8."""
    # A character has at most three continuation bytes.
    begins = next((at for at, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), len(data))
    try:
        return data[begins:].decode()
    except UnicodeDecodeError:
        return None
