"""Progress on standard error."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from ._clean import clean
from ._printing import notice


def how_far(current: float, total: float | None) -> str:
    """``2,159,620/3,000,000``: in full, also what counts bytes."""
    return f"{current:,.12g}" + (f"/{total:,.12g}" if total is not None else "")


class Progressbar:
    """Shows progress on standard error: one line that is rewritten on a terminal, else a line for each message."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = 0

    def show(self, progress: Any) -> None:
        """Show one ``Progress``."""
        parts = []
        if progress.current is not None:
            parts.append(how_far(progress.current, progress.total))
        if progress.message:
            parts.append(clean(progress.message))
        self.line(" ".join(parts))

    def line(self, text: str) -> None:
        """Show one line in place of the last."""
        if not self._live:
            sys.stderr.write(f"… {text}\n")
            return
        text = text[: shutil.get_terminal_size().columns - 3].replace("\n", " ")
        sys.stderr.write(f"\r… {text}{' ' * (self._shown - len(text))}")
        sys.stderr.flush()
        self._shown = len(text)

    def notice(self, text: str) -> None:
        """Tell something else, on a line of its own."""
        self.close()
        notice(text)

    def erase(self) -> None:
        """Take the line away."""
        if self._live and self._shown:
            sys.stderr.write(f"\r{' ' * (self._shown + 2)}\r")
            sys.stderr.flush()
            self._shown = 0

    def close(self) -> None:
        """Leave the line."""
        if self._live and self._shown:
            sys.stderr.write("\n")
            self._shown = 0
