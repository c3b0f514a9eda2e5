"""Convert printed lines to `log` messages of the call that printed them, within limits."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable

from ._context import current_call

MAX_LINE = 65_536
"""The maximum length of a log line in characters. A longer line is omitted entirely, because a truncated line could end
with a part of a secret, which would not be redacted."""


def left_out(length: int) -> str:
    """Return the replacement for an omitted line of that many characters."""
    return f"[line of {length:,} characters omitted]"


class OutputAllowance:
    """The remaining output allowance of a call.

    Args:
        lines: the maximum number of lines.
        text: the maximum number of characters in total.

    Attributes:
        dropped: the number of dropped lines that have not been reported.
    """

    __slots__ = ("_lines", "_text", "dropped")

    def __init__(self, lines: int, text: int) -> None:
        self._lines = lines
        self._text = text
        self.dropped = 0

    def take(self, text: str) -> bool:
        """Count a line, and return whether it may be passed on."""
        self._lines -= 1
        self._text -= len(text)
        return self._lines >= 0 and self._text >= 0


class Output(io.TextIOBase):
    """A replacement for ``sys.stdout`` or ``sys.stderr`` that keeps the lines of concurrent calls separate.

    Args:
        name: ``stdout`` or ``stderr``.
        descriptor: the real descriptor, for code that calls ``fileno()``.
        emit: called with the call's id (``None`` outside a call), the name and one line.
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
        """Write text, and send its complete lines immediately."""
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
        """Append to the incomplete line and return its text, or only its length if it is too long."""
        line = self._open_lines.pop(key, "")
        length = len(piece) + (line if isinstance(line, int) else len(line))
        return length if isinstance(line, int) or length > MAX_LINE else line + piece

    def _emit_line(self, key: str | None, line: str | int) -> None:
        self._emit(key, self.name, left_out(line) if isinstance(line, int) else line)

    def end_call(self, key: str | None) -> None:
        """Send the incomplete last line of the call."""
        with self._lock:
            rest = self._open_lines.pop(key, "")
        if rest:
            self._emit_line(key, rest)

    def fileno(self) -> int:
        """Return the real descriptor. Output written to it is not attributed to a call."""
        return self._descriptor

    def writable(self) -> bool:
        """Return ``True``."""
        return True

    def isatty(self) -> bool:
        """Return ``False``."""
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
