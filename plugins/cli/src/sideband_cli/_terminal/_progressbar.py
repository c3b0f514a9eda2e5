"""Progress on standard error."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from ._clean import clean
from ._printing import notice


def format_progress(current: float, total: float | None) -> str:
    """Format progress such as ``2,159,620/3,000,000``, without rounding."""
    return f"{current:,.12g}" + (f"/{total:,.12g}" if total is not None else "")


class Progressbar:
    """Progress on standard error: a single rewritten line on a terminal, otherwise a line for each message."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = 0

    def show(self, progress: Any) -> None:
        """Show one ``Progress``."""
        parts = []
        if progress.current is not None:
            parts.append(format_progress(progress.current, progress.total))
        if progress.message:
            parts.append(clean(progress.message))
        self.line(" ".join(parts))

    def line(self, text: str) -> None:
        """Show a line in place of the last one."""
        if not self._live:
            sys.stderr.write(f"… {text}\n")
            return
        text = text[: shutil.get_terminal_size().columns - 3].replace("\n", " ")
        sys.stderr.write(f"\r… {text}{' ' * (self._shown - len(text))}")
        sys.stderr.flush()
        self._shown = len(text)

    def notice(self, text: str) -> None:
        """Print a message on its own line."""
        self.close()
        notice(text)

    def erase(self) -> None:
        """Erase the line."""
        if self._live and self._shown:
            sys.stderr.write(f"\r{' ' * (self._shown + 2)}\r")
            sys.stderr.flush()
            self._shown = 0

    def close(self) -> None:
        """End the line, keeping its text."""
        if self._live and self._shown:
            sys.stderr.write("\n")
            self._shown = 0
