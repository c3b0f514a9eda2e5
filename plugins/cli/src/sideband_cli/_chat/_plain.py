"""A chat without a terminal that can be edited: lines are read one after the other, each answered before the next."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import CancelScope, wait_readable

from .._agent._run_output import RunOutput
from .._terminal._clean import clean
from .._terminal._progressbar import Progressbar
from .._terminal._questions import ask_at_terminal

_PIECE = 65_536
_LONGEST = 1 << 20


class PlainFrontend(RunOutput):
    """A ``Sink``, and the lines of standard input.

    Attributes:
        takes_turns: messages wait for each other's answers, since nobody sees when one could be queued.
        ask: puts a question to the person at the terminal; ``None`` where there is none.
    """

    takes_turns = True

    def __init__(self) -> None:
        bar = Progressbar()
        super().__init__(bar, live=True)
        self.ask = ask_at_terminal(bar)
        self._left = False
        self._ended = False
        self._buffer = b""
        self._waiting: CancelScope | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Nothing has to be prepared."""
        yield

    async def read(self) -> str:
        """The next message or chat command; a backslash at the end of a line goes on with the next one.

        Raises:
            EOFError: there is none.
        """
        self.end_text()
        lines = [await self._line("> ")]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(await self._line("  "))
        return "\n".join(lines)

    def leave(self) -> None:
        """Let ``read`` find nothing more, now or when it is called next."""
        self._left = True
        if self._waiting is not None:
            self._waiting.cancel()

    def say(self, text: str) -> None:
        """Show what was asked for with a chat command."""
        self.end_text()
        sys.stdout.write(clean(text) + "\n")
        sys.stdout.flush()

    def suggest(self, text: str) -> None:
        """Show what could be said: nobody can edit it here."""
        self.line(text)

    def refresh(self) -> None:
        """Nothing: no status is shown."""

    async def _line(self, prompt: str) -> str:
        if sys.stdin.isatty() and not self._left:
            sys.stderr.write(prompt)
            sys.stderr.flush()
        with CancelScope() as self._waiting:
            while b"\n" not in self._buffer and not self._ended and not self._left and len(self._buffer) < _LONGEST:
                await self._fill()
        if self._left or not self._buffer:
            raise EOFError
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").removesuffix("\r")

    async def _fill(self) -> None:
        descriptor = sys.stdin.fileno()
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            await wait_readable(descriptor)  # not in a thread, which nothing could end
        piece = os.read(descriptor, _PIECE)
        self._ended = not piece
        self._buffer += piece
