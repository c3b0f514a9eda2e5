"""What skill code prints becomes `log` messages of the call that printed it."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable

from ._context import current_call

__all__ = ["Output"]

MAX_LINE = 8_192
"""Characters of one log line; the rest of a longer line follows as the next one."""


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
        self._open_lines: dict[str | None, str] = {}
        self._lock = threading.RLock()
        self.buffer = _Bytes(self)

    def write(self, text: str) -> int:
        """Print text; whole lines are sent at once."""
        call = current_call.get()
        key = None if call is None else call.id
        with self._lock:
            *lines, rest = (self._open_lines.pop(key, "") + str(text)).split("\n")
            for line in lines:
                self._emit_line(key, line)
            while len(rest) > MAX_LINE:
                self._emit(key, self.name, rest[:MAX_LINE])
                rest = rest[MAX_LINE:]
            if rest:
                self._open_lines[key] = rest
        return len(text)

    def _emit_line(self, key: str | None, line: str) -> None:
        for start in range(0, len(line) or 1, MAX_LINE):
            self._emit(key, self.name, line[start : start + MAX_LINE])

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
