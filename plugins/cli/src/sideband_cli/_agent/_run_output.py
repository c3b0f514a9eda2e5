"""How ``sideband run`` shows a run: the answer on standard output, all else on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .._terminal._clean import clean
from .._terminal._progressbar import Progressbar
from .._terminal._streamed_text import StreamCleaner
from .._terminal._style import dim

if TYPE_CHECKING:
    from sideband_agent import RunResult


class RunOutput:
    """A ``Sink`` over the standard streams.

    On a terminal, text appears as it comes. A file or a pipe gets the answer alone, once it is known to be one: not
    what the model says before it calls tools, and not the first half of what a broken connection cut.

    Args:
        bar: shows what goes on right now.
        live: whether text appears as it comes; whether standard output is a terminal if ``None``.
    """

    def __init__(self, bar: Progressbar, *, live: bool | None = None) -> None:
        self._bar = bar
        self._live = sys.stdout.isatty() if live is None else live
        self._cleaner = StreamCleaner()
        self._column = 0
        self._thinks = False
        self._shown = ""  # of the last text that appeared as it came

    def text(self, part: str) -> None:
        """Show more of what the model says, if it may still be followed by something else."""
        if not self._live:
            return
        if self._thinks:
            self.end_text()
        if self._column == 0 and not self._shown:
            self._bar.close()
        text = self._cleaner.feed(part)
        self._shown += text
        self._write(text)

    def thinking(self, part: str) -> None:
        """Show more of what the model thinks."""
        if not self._thinks:
            self.end_text()
            self._bar.close()
        self._thinks = True
        text = self._cleaner.feed(part)
        sys.stderr.write(dim(text, sys.stderr))
        sys.stderr.flush()
        self._move(text)

    def end_text(self) -> None:
        """End the line that text or thoughts are on."""
        self._cleaner.end()
        if self._column:
            stream = sys.stderr if self._thinks else sys.stdout
            stream.write("\n")
            stream.flush()
        self._column = 0
        self._thinks = False

    def aside(self, text: str) -> None:
        """Show what is no answer yet, unless it has been shown."""
        if text.strip() and not self._live:
            self.line(text.strip())
        self._shown = ""

    def line(self, text: str) -> None:
        """Show something about the run."""
        self.end_text()
        self._bar.close()
        sys.stderr.write(dim(clean(text), sys.stderr) + "\n")
        sys.stderr.flush()
        self._shown = ""

    def progress(self, text: str) -> None:
        """Show what goes on right now, where it can be taken away again."""
        if not sys.stderr.isatty():
            return
        self.end_text()
        if text:
            self._bar.line(clean(text))
        else:
            self._bar.erase()

    def answer(self, result: RunResult) -> None:
        """Show the answer, if there is one, and it has not been shown as it came."""
        self.end_text()
        self._bar.erase()
        if result.status != "completed":
            return
        text = clean(result.text.replace("\r\n", "\n"))
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
