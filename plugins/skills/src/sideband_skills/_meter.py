"""Measurement of what loading uses, compared with the limits. A check is also the point where loading is cancelled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from operator import attrgetter
from pathlib import Path
from time import monotonic, thread_time

from anyio import from_thread
from attrs import define, field

from ._config import Config

# Folders have more entries than files: hidden ones, other folders, and links.
_ENTRIES_PER_FILE = 4
# seconds between two looks at the processor time and at cancellation, since both cost more than most steps
_INTERVAL = 0.02


class LimitReached(Exception):
    """A skill, or all skills together, used more than a limit allows.

    Args:
        limit: the key of the limit in ``[plugins.skills]``.
        reason: what exceeds it.
    """

    def __init__(self, limit: str, reason: str) -> None:
        super().__init__(reason)
        self.limit = limit
        self.reason = reason


@define
class Meter:
    """The processor time of one load and of its current skill, and the text that it keeps.

    Time is that of the loading thread and of the process that parses Python, so other load does not change the result.
    The thread's time is read only when it can have reached a limit: it never grows faster than the clock on the wall.

    Args:
        limits: the limits.

    Attributes:
        text: the characters that are kept.
    """

    limits: Config = field(factory=Config)
    _began: float = field(factory=thread_time, init=False)
    _elsewhere: float = field(default=0.0, init=False)
    _skill_began: float = field(default=0.0, init=False)
    _nodes: int = field(default=0, init=False)
    _entries: int = field(default=0, init=False)
    text: int = field(default=0, init=False)
    _is_in_skill: bool = field(default=False, init=False)
    _due: float = field(default=0.0, init=False)

    def start(self) -> None:
        """Begin to measure the current thread."""
        self._began, self._due = thread_time(), 0.0

    @property
    def used(self) -> float:
        """The processor time since the start, in seconds."""
        return thread_time() - self._began + self._elsewhere

    @property
    def seconds_left(self) -> float:
        """The processor time that the current skill may still use."""
        return max(0.0, self.limits.seconds - (self.used - self._skill_began))

    @property
    def nodes_left(self) -> int:
        """The number of syntax nodes that the current skill may still have."""
        return max(0, self.limits.nodes - self._nodes)

    @contextmanager
    def skill(self) -> Iterator[None]:
        """Measure one skill."""
        self._skill_began, self._nodes, self._entries, self._is_in_skill = self.used, 0, 0, True
        self._due = min(self._due, monotonic() + self.limits.seconds)
        try:
            yield
        finally:
            self._is_in_skill = False

    def check(self) -> None:
        """Check the processor time and the text.

        Raises:
            LimitReached: if it is used up.
        """
        now = monotonic()
        if now < self._due and self.text <= self.limits.total_text:
            return
        with suppress(RuntimeError):
            # raised outside threads of anyio, where there is nothing to cancel
            from_thread.check_cancelled()
        if self._is_in_skill and not self.seconds_left:
            raise LimitReached("seconds", f"loading takes more than {self.limits.seconds:g} s of processor time")
        self.check_total()
        of_skill = self.seconds_left if self._is_in_skill else _INTERVAL
        self._due = now + min(_INTERVAL, of_skill, self.limits.total_seconds - self.used)

    def check_total(self) -> None:
        """Check what all skills together have used.

        Raises:
            LimitReached: if it exceeds a limit.
        """
        if self.used > self.limits.total_seconds:
            used = f"loading all skills takes more than {self.limits.total_seconds:g} s of processor time"
            raise LimitReached("total_seconds", used)
        if self.text > self.limits.total_text:
            raise LimitReached("total_text", f"the skills have more than {self.limits.total_text:,} characters of text")

    def add_parsed(self, seconds: float, nodes: int) -> None:
        """Count the processor time of the parsing process, and the nodes of its result."""
        self._elsewhere += seconds
        self._nodes += nodes
        self._due = 0.0

    def add_text(self, length: int) -> None:
        """Count text that is kept."""
        self.text += length

    def add_entries(self, number: int) -> None:
        """Count entries of the current skill that were listed before it was measured."""
        self._entries += number

    def entries(self, folder: str | Path) -> list[os.DirEntry[str]]:
        """Return the entries of a folder, sorted by name.

        Raises:
            OSError: if the folder cannot be read.
            LimitReached: if the current skill, or a folder outside skills, has too many entries.
        """
        most = self.limits.files * _ENTRIES_PER_FILE
        if not self._is_in_skill:
            self._entries = 0
        with os.scandir(folder) as entries:
            found = list(islice(entries, most - self._entries + 1))
        self._entries += len(found)
        if self._entries > most:
            raise LimitReached("files", f"it has more than {most:,} files, folders and links")
        self.check()
        return sorted(found, key=attrgetter("name"))
