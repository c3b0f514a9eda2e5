"""Progress on standard error."""

from __future__ import annotations

import sys
from typing import Any

from sideband.command_line import marked, notice, on_notice

from ._columns import columns, fitted, terminal_width
from ._words import one_line

_MAX_LENGTH = 500


def format_progress(current: float, total: float | None, unit: str | None = None) -> str:
    """Format progress such as ``2,159,620/3,000,000 bytes``, without rounding."""
    return f"{current:,.12g}" + (f"/{total:,.12g}" if total is not None else "") + (f" {unit}" if unit else "")


class Progressbar:
    """Progress on standard error: a single rewritten line on a terminal, otherwise a line for each message.

    Args:
        output: whether to show the lines of output too, as soon as each is complete.
    """

    def __init__(self, *, output: bool = False) -> None:
        self._live = sys.stderr.isatty()
        self._shown = 0
        self._output = output
        self._partial: dict[str, str] = {}

    def show(self, progress: Any) -> None:
        """Show a ``ToolProgress``."""
        if self._output and (progress.text is not None or progress.closed):
            self._show_output(progress.stream, progress.text or "", ends=progress.closed)
        if progress.current is None and progress.message is None:
            return
        parts = []
        if progress.current is not None:
            parts.append(format_progress(progress.current, progress.total, progress.unit))
        if progress.message:
            parts.append(progress.message)
        self.line(" ".join(parts))

    def _show_output(self, stream: str, text: str, *, ends: bool) -> None:
        *lines, rest = (self._partial.pop(stream, "") + text).split("\n")
        if ends or len(rest) > _MAX_LENGTH:
            lines, rest = [*lines, rest], ""
        if rest:
            self._partial[stream] = rest
        for line in filter(str.strip, lines):
            self.line(line)

    def line(self, text: str) -> None:
        """Show a line in place of the last one."""
        (text,) = marked([f"… {one_line(text)}"], sys.stderr)
        if not self._live:
            sys.stderr.write(fitted(text, _MAX_LENGTH) + "\n")
            return
        text = fitted(text, terminal_width(sys.stderr) - 1)  # a line that is wrapped could not be erased
        shown = columns(text)
        sys.stderr.write(f"\r{text}{' ' * (self._shown - shown)}")
        sys.stderr.flush()
        self._shown = shown
        on_notice(self.close)

    def notice(self, text: str) -> None:
        """Print a message on its own line."""
        notice(text)

    def erase(self) -> None:
        """Erase the line."""
        if self._live and self._shown:
            sys.stderr.write(f"\r{' ' * self._shown}\r")
            sys.stderr.flush()
            self._end()

    def close(self) -> None:
        """End the line, keeping its text."""
        if self._live and self._shown:
            sys.stderr.write("\n")
            self._end()

    def _end(self) -> None:
        self._shown = 0
        on_notice(None)
