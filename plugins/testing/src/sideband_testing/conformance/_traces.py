"""What the use of a plugin leaves behind: log lines and files."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path


class CollectingHandler(logging.Handler):
    """Collects formatted log lines in a list."""

    def __init__(self, records: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        """Add a line."""
        self._records.append(self.format(record))


def file_names(folder: Path) -> frozenset[str]:
    """Return the paths of all files and folders in a folder, relative to it."""
    return frozenset(str(path.relative_to(folder)) for path in folder.rglob("*"))


def unexplained(now: frozenset[str], known: Iterable[frozenset[str]]) -> list[str]:
    """Return the files that exist neither before nor after an example."""
    return sorted(now.difference(*known)) if now not in known else []


def state_files(home: Path) -> dict[str, str]:
    """Return the files of a host's state by name. Blobs are what the user stored."""
    found = {}
    for path in home.rglob("*"):
        if path.is_file() and "blobs" not in path.relative_to(home).parts:
            found[f"the file {path.relative_to(home)} of the host"] = path.read_bytes().decode("utf-8", "replace")
    return found
