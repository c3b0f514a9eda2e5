"""The output of ``sideband run``: the answer on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sideband.command_line import marked
from sideband.rendering import indented, render

from .._terminal._progressbar import Progressbar
from .._terminal._streamed_text import StreamRenderer
from .._terminal._style import dim

if TYPE_CHECKING:
    from sideband_agent import RunResult


class RunOutput:
    """A ``Sink`` over the standard streams.

    A terminal shows text as it is streamed. A file or a pipe receives only the final answer, once it is complete: not
    the text before tool calls, and not the first half of an answer whose connection broke.

    Args:
        bar: shows progress messages.
        live: whether to stream text; ``None`` means only if standard output is a terminal.
    """

    def __init__(self, bar: Progressbar, *, live: bool | None = None) -> None:
        self._bar = bar
        self._live = sys.stdout.isatty() if live is None else live
        self._renderer = StreamRenderer()
        self._column = 0
        self._thinks = False
        self._shown = ""  # the text streamed since the last tool calls

    def text(self, part: str) -> None:
        """Show a part of the model's text, if text is streamed."""
        if not self._live:
            return
        if self._thinks:
            self.end_text()
        if self._column == 0:
            self._bar.close()
        text = self._renderer.feed(part)
        self._shown += text
        self._write(text)

    def thinking(self, part: str) -> None:
        """Show a part of the model's thinking."""
        if not self._thinks:
            self.end_text()
            self._bar.close()
        self._thinks = True
        text = self._renderer.feed(part)
        first, *rest = text.split("\n")
        lines = [first if self._column else _thought(first), *map(_thought, rest)]
        sys.stderr.write(dim("\n".join(lines), sys.stderr))
        sys.stderr.flush()
        self._move(text)

    def end_text(self) -> None:
        """End the current line of text or thinking."""
        self._renderer.end()
        if self._column:
            stream = sys.stderr if self._thinks else sys.stdout
            stream.write("\n")
            stream.flush()
        self._column = 0
        self._thinks = False

    def aside(self, text: str) -> None:
        """Show text that precedes tool calls, unless it was streamed."""
        if text.strip() and not self._live:
            self.line(f"model: {text.strip()}")
        self._shown = ""

    def line(self, text: str) -> None:
        """Show a status message; all its lines but the first are indented."""
        self.end_text()
        self._bar.close()
        sys.stderr.write("".join(f"{dim(line, sys.stderr)}\n" for line in marked(indented(text), sys.stderr)))
        sys.stderr.flush()
        self._shown += "\n"  # an answer that it interrupts is shown again in one piece

    def progress(self, text: str) -> None:
        """Show a progress message, if standard error is a terminal and can erase it again."""
        if not sys.stderr.isatty():
            return
        self.end_text()
        if text:
            self._bar.line(text)
        else:
            self._bar.erase()

    def answer(self, result: RunResult) -> None:
        """Show the answer of a completed run, unless it was streamed."""
        self.end_text()
        self._bar.erase()
        if result.status != "completed":
            return
        text = render(result.text, prose=True)
        if text and not (self._live and self._shown.strip().endswith(text.strip())):
            self._write(text)
            self.end_text()

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        self._move(text)

    def _move(self, text: str) -> None:
        if text:
            self._column = len(text.rpartition("\n")[2]) or int(not text.endswith("\n"))


def _thought(line: str) -> str:
    """Indent a line of the model's thinking, so that it does not look like a message."""
    return f"  {line}" if line else ""
