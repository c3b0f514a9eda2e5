"""What skill code prints becomes `log` messages of the call that printed it, as far as somebody may want to read it."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable

from ._context import current_call

MAX_LINE = 65_536
"""Characters of one log line. A longer one is left out, whole: in a part of it, half a secret would go unrecognised."""


def left_out(length: int) -> str:
    """What stands for a line of that many characters that is too long."""
    return f"[a line of {length:,} characters was left out]"


class OutputAllowance:
    """What one call may still print.

    Args:
        lines: how many lines.
        text: how many characters, of all of them.

    Attributes:
        dropped: how many lines were dropped and not yet declared.
    """

    __slots__ = ("_lines", "_text", "dropped")

    def __init__(self, lines: int, text: int) -> None:
        self._lines = lines
        self._text = text
        self.dropped = 0

    def take(self, text: str) -> bool:
        """Count a line. Whether it may be passed on."""
        self._lines -= 1
        self._text -= len(text)
        return self._lines >= 0 and self._text >= 0


class Output(io.TextIOBase):
    """Stands in for ``sys.stdout`` or ``sys.stderr``: keeps each call's lines apart, whoever prints at once.

    Args:
        name: ``stdout`` or ``stderr``.
        descriptor: the real one, for code that asks for ``fileno()``.
        emit: called with the call's id (``None`` outside any call), the name and one line.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, name: str, descriptor: int, emit: Callable[[str | None, str, str], None]) -> None:
        self.name = name
        self._descriptor = descriptor
        self._emit = emit
        self._open_lines: dict[str | None, str | int] = {}
        self._lock = threading.RLock()
        self.buffer = _Bytes(self)

    def write(self, text: str) -> int:
        """Print text; whole lines are sent at once."""
        call = current_call.get()
        key = None if call is None else call.id
        with self._lock:
            *ends, rest = str(text).split("\n")
            for end in ends:
                self._emit_line(key, self._continued(key, end))
            if rest:
                self._open_lines[key] = self._continued(key, rest)
        return len(text)

    def _continued(self, key: str | None, piece: str) -> str | int:
        """The line that was left open, continued: its text, or only its length if it is too long."""
        line = self._open_lines.pop(key, "")
        length = len(piece) + (line if isinstance(line, int) else len(line))
        return length if isinstance(line, int) or length > MAX_LINE else line + piece

    def _emit_line(self, key: str | None, line: str | int) -> None:
        self._emit(key, self.name, left_out(line) if isinstance(line, int) else line)

    def end_call(self, key: str | None) -> None:
        """Send the line that the call left open."""
        with self._lock:
            rest = self._open_lines.pop(key, "")
        if rest:
            self._emit_line(key, rest)

    def fileno(self) -> int:
        """The real descriptor. What is written there is the worker's, not the call's."""
        return self._descriptor

    def writable(self) -> bool:
        """Always."""
        return True

    def isatty(self) -> bool:
        """Never."""
        return False


class _Bytes(io.RawIOBase):
    """``sys.stdout.buffer``."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        plain = bytes(data)  # type: ignore[call-overload]
        self._output.write(plain.decode("utf-8", "backslashreplace"))
        return len(plain)
