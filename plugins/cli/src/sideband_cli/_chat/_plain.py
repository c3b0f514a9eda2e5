"""The chat frontend without line editing: each line is answered before the next is read."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from anyio import CancelScope, wait_readable
from sideband.command_line import print_text

from .._agent._run_output import RunOutput
from .._terminal._progressbar import Progressbar
from .._terminal._questions import ask_at_terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sideband.messages import ImagePart

    from .._terminal._styled import Fragment

_CHUNK_SIZE = 65_536
_MAX_LINE_LENGTH = 1 << 20


class PlainFrontend(RunOutput):
    """A frontend that reads lines from standard input.

    Attributes:
        takes_turns: true: each message is answered before the next is read.
        ask: asks a question at the terminal; ``None`` without a terminal.
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
        self._prompt = ""  # as long as it waits for a line

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Do nothing: no preparation is needed."""
        yield

    async def read(self) -> str:
        """Return the next message or chat command; a backslash at the end of a line continues it on the next one.

        Raises:
            EOFError: at the end of the input.
        """
        self.end_text()
        lines = [await self._line("> ")]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(await self._line("  "))
        return "\n".join(lines)

    def leave(self) -> None:
        """Make the current or next ``read`` raise ``EOFError``."""
        self._left = True
        if self._waiting is not None:
            self._waiting.cancel()

    def line(self, text: str) -> None:
        """Show a status message; if a prompt is shown, below it, and then the prompt again."""
        if self._prompt:
            sys.stderr.write("\n")
        super().line(text)
        sys.stderr.write(self._prompt)
        sys.stderr.flush()

    def say(self, text: str) -> None:
        """Show the output of a chat command."""
        self.end_text()
        print_text(text)
        sys.stdout.flush()

    def show(self, lines: Iterable[Sequence[Fragment]]) -> None:
        """Show lines without styles."""
        self.say("\n".join("".join(text for _, text in fragments) for fragments in lines))

    def suggest(self, text: str) -> None:
        """Show a text, since it cannot be put into an editable prompt."""
        self.line(text)

    def refresh(self) -> None:
        """Do nothing: no status is shown."""

    def take_images(self, text: str) -> list[ImagePart]:  # noqa: ARG002  the signature of all frontends
        """Return nothing: no images can be pasted."""
        return []

    def ring(self) -> None:
        """Do nothing: it may be a pipe."""

    async def _line(self, prompt: str) -> str:
        if sys.stdin.isatty() and not self._left:
            sys.stderr.write(prompt)
            sys.stderr.flush()
            self._prompt = prompt
        try:
            with CancelScope() as self._waiting:
                while b"\n" not in self._buffer and not (
                    self._ended or self._left or len(self._buffer) >= _MAX_LINE_LENGTH
                ):
                    await self._fill()
        finally:
            self._prompt = ""
        if self._left or not self._buffer:
            if sys.stdin.isatty():  # the cursor is still after the prompt
                sys.stderr.write("\n")
            raise EOFError
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").removesuffix("\r")

    async def _fill(self) -> None:
        descriptor = sys.stdin.fileno()
        # A thread could not be cancelled. The event loop refuses files and /dev/null, which are always readable.
        with suppress(PermissionError):
            await wait_readable(descriptor)
        chunk = os.read(descriptor, _CHUNK_SIZE)
        self._ended = not chunk
        self._buffer += chunk
