"""The standard streams of the process while a chat owns the terminal."""

from __future__ import annotations

import io
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def without_line_editing(descriptor: int) -> Iterator[None]:
    """Turn off the terminal's line editing and echo, and restore both afterwards."""
    before = termios.tcgetattr(descriptor)
    during = termios.tcgetattr(descriptor)
    during[3] &= ~(termios.ICANON | termios.ECHO)
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, during)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class LineWriter(io.TextIOBase):
    """A stream that passes each complete line to a function."""

    def __init__(self, take: Callable[[str], object]) -> None:
        self._take = take
        self._rest = ""

    def write(self, text: str) -> int:
        """Pass the lines that a text completes."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._take(line)
        return len(text)

    def writable(self) -> bool:
        """Return whether it can be written to."""
        return True
