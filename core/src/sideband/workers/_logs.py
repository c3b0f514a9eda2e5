"""Bounds on what a worker may print: lines are cut, floods counted, the last words remembered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ._calls import LogLine

__all__ = ["CallLog", "LastWords", "LineSplitter"]

MAX_LINE = 8_192
MAX_LINES = 10_000
MAX_TEXT = 4 * 1024 * 1024


class CallLog:
    """The log of one call: passes on 10,000 lines and 4 MiB at most, then counts.

    Args:
        emit: takes each line.
    """

    __slots__ = ("_dropped", "_emit", "_lines", "_text")

    def __init__(self, emit: Callable[[LogLine], None]) -> None:
        self._emit = emit
        self._lines = 0
        self._text = 0
        self._dropped = 0

    def add(self, stream: str, text: str) -> None:
        """Pass a line on, or count it."""
        if len(text) > MAX_LINE:
            text = f"{text[: MAX_LINE - 40]}… [{len(text) - MAX_LINE + 40:,} characters cut]"
        self._lines += 1
        self._text += len(text)
        if self._lines > MAX_LINES or self._text > MAX_TEXT:
            self._dropped += 1
        else:
            self._emit(LogLine(stream, text))

    def close(self) -> None:
        """Declare what was dropped."""
        if self._dropped:
            self._emit(LogLine("note", f"{self._dropped:,} more lines were dropped"))
            self._dropped = 0


class LastWords:
    """The last lines of a worker's standard error, for the message that says how it ended."""

    __slots__ = ("_lines",)

    def __init__(self, lines: int = 5) -> None:
        self._lines: deque[str] = deque(maxlen=lines)

    def add(self, text: str) -> None:
        """Remember a line, and forget the oldest."""
        if text.strip():
            # Not cut here: the host does that once secrets are out of it, and does not recognise half of one.
            self._lines.append(text.strip())

    def __str__(self) -> str:
        return " / ".join(self._lines)


class LineSplitter:
    """Cuts the bytes of a descriptor into lines of text."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that are whole now. A line that grows too long is cut where it is."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            lines.append(self._rest)
            self._rest = b""
        return [line.decode("utf-8", "replace") for line in lines]

    def close(self) -> list[str]:
        """The line that was left open, if one was."""
        rest, self._rest = self._rest, b""
        return [rest.decode("utf-8", "replace")] if rest else []
