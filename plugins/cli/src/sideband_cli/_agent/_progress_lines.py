"""The progress of tools as newline-delimited JSON, the output of ``sideband run --progress FILE``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, TextIO

from attrs import frozen
from sideband import UsageError
from sideband.command_line import json_text

if TYPE_CHECKING:
    from sideband.hooks import ObserveEvent, ToolProgress


@frozen
class ProgressLines:
    """Writes one line for each event of progress, and flushes it.

    Args:
        file: takes the lines.
        clock: returns the time in seconds since 1970.
    """

    file: TextIO
    clock: Callable[[], float] = time

    def take(self, event: ObserveEvent) -> None:
        """Write an event if it is one of progress."""
        if event.hook == "tool_progress":
            self.file.write(json_text(progress_data(event, self.clock()), self.file) + "\n")  # type: ignore[arg-type]
            self.file.flush()


def progress_data(event: ToolProgress, ts: float) -> dict[str, Any]:
    """Return an event of progress as data. A gap has its size in ``gap``; the text of a report is for display.

    Example:
        >>> from sideband.hooks import ToolProgress
        >>> progress_data(ToolProgress("c1", "build", "stdout", 0, text="compiling"), 1.5)["text"]
        'compiling'
        >>> progress_data(ToolProgress("c1", "build", "progress", 0, current=3, total=10, unit="files"), 1.5)["text"]
        '3/10 files'
    """
    data = {
        "type": "tool_progress",
        "tool_call_id": event.call,
        "text": _report(event) if event.text is None else event.text,
        "stream": event.stream,
        "closed": event.closed,
        "ts": ts,
    }
    return data if event.gap is None else {**data, "gap": event.gap}


def _report(event: ToolProgress) -> str:
    amounts = [f"{one:g}" for one in (event.current, event.total) if one is not None]
    return " ".join(filter(None, ["/".join(amounts), event.unit if amounts else None, event.message]))


@contextmanager
def progress_to(path: str | None) -> Iterator[ProgressLines | None]:
    """Open the file that takes the lines, which replace its content; ``None`` without a path.

    Raises:
        UsageError: if it cannot be opened.
    """
    if path is None:
        yield None
        return
    try:
        file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115  closed below, and its errors are other ones
    except OSError as error:
        raise UsageError(f"--progress: cannot write {path}: {error.strerror}", hint="name another file") from None
    with file:
        yield ProgressLines(file)
