"""Keep output back while a question is displayed, so that it neither overwrites nor imitates it."""

from __future__ import annotations

import io
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

_MAX_CHARACTERS = 262_144


class _Held:
    """The writes to the terminal that are kept back; the oldest are dropped if there are too many."""

    def __init__(self) -> None:
        self._writes: deque[tuple[TextIO, str]] = deque()
        self._size = 0

    def add(self, stream: TextIO, text: str) -> None:
        self._writes.append((stream, text))
        self._size += len(text)
        while self._size > _MAX_CHARACTERS and len(self._writes) > 1:
            self._size -= len(self._writes.popleft()[1])

    def release(self) -> None:
        for stream, text in self._writes:
            stream.write(text)
            stream.flush()


class _HeldStream(io.TextIOBase):
    """A stand-in for a standard stream at a terminal."""

    def __init__(self, stream: TextIO, held: _Held) -> None:
        self._stream = stream
        self._held = held

    def write(self, text: str) -> int:
        self._held.add(self._stream, text)
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


@contextmanager
def held_output() -> Iterator[TextIO]:
    """Keep back all output to the terminal for a block, and return the stream of the terminal for the block itself."""
    held = _Held()
    terminal = sys.stderr
    try:
        with ExitStack() as redirections:
            redirections.enter_context(redirect_stderr(_HeldStream(terminal, held)))
            if sys.stdout.isatty():
                redirections.enter_context(redirect_stdout(_HeldStream(sys.stdout, held)))
            yield terminal
    finally:
        held.release()
