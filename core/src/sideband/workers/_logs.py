"""Bounds on what a worker may print: floods are counted, and lines without end left out."""

from __future__ import annotations

from collections.abc import Callable

from ._calls import LogLine
from .runtime import MAX_LINE, OutputAllowance, left_out

__all__ = ["CallLog", "LineSplitter"]

MAX_LINES = 10_000
MAX_TEXT = 4 * 1024 * 1024


class CallLog:
    """The log of one call: passes on 10,000 lines and 4 MiB at most, then counts.

    Args:
        emit: takes each line.
    """

    __slots__ = ("_allowance", "_emit")

    def __init__(self, emit: Callable[[LogLine], None]) -> None:
        self._emit = emit
        self._allowance = OutputAllowance(MAX_LINES, MAX_TEXT)

    def add(self, stream: str, text: str) -> bool:
        """Pass a line on, or count it. Whether all of it was passed on."""
        is_whole = len(text) <= MAX_LINE
        if not is_whole:
            text = left_out(len(text))
        if not self._allowance.take(text):
            self._allowance.dropped += 1
            return False
        self._emit(LogLine(stream, text))
        return is_whole

    def close(self) -> None:
        """Declare what was dropped."""
        if self._allowance.dropped:
            self._emit(LogLine("note", f"{self._allowance.dropped:,} more lines were dropped"))
            self._allowance.dropped = 0


class LineSplitter:
    """Cuts the bytes of a descriptor into lines of text."""

    __slots__ = ("_length", "_rest")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._length = 0

    def feed(self, data: bytes) -> list[str]:
        """The lines that are whole now."""
        *ends, rest = data.split(b"\n")
        lines = [self._end(end) for end in ends]
        self._continue(rest)
        return lines

    def close(self) -> list[str]:
        """The line that was left open, if one was."""
        return [self._end(b"")] if self._length else []

    def _continue(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= MAX_LINE:
            self._rest += piece
        else:
            # Not even its beginning is kept: it may end with half a secret.
            self._rest.clear()

    def _end(self, piece: bytes) -> str:
        self._continue(piece)
        text = self._rest.decode("utf-8", "replace") if self._length <= MAX_LINE else left_out(self._length)
        self._rest.clear()
        self._length = 0
        return text
