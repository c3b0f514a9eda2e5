"""The streams of a call's progress that wait for a slow consumer, in bounded memory."""

from __future__ import annotations

from collections import deque

from attrs import define, field, frozen

FLUSH_SECONDS = 0.05
"""The time in seconds for which text is collected before it is delivered."""
FLUSH_BYTES = 16_384
"""The size of a text that is delivered at once, and the maximum size of the text of one event."""
_CHUNK_BYTES = 128
"""The memory that a waiting text takes besides its characters. Sources that alternate make many short texts."""


@frozen
class Report:
    """One report of an op or a tool."""

    source: str
    current: float | None
    total: float | None
    message: str | None
    unit: str | None


@define(eq=False)
class Chunk:
    """Text of one source that is delivered as one event. ``size`` is in bytes of UTF-8."""

    source: str
    text: str
    size: int


@define(eq=False)
class ReportStream:
    """The reports of a call, in order.

    Attributes:
        limit: the maximum number of waiting reports. The oldest ones are dropped.
        offset: the number of reports that were delivered or are in a delivered gap.
        lost: the number of reports that were dropped since, before the first waiting one.
        count: the number of waiting reports.
        is_closing: whether no more reports follow.
        waiting: the reports, and the numbers of those that were lost in between.
    """

    limit: int
    offset: int = 0
    lost: int = 0
    count: int = 0
    is_closing: bool = False
    waiting: deque[Report | int] = field(factory=deque)

    def add(self, report: Report | int) -> None:
        """Add a report, or the number of reports that were lost before they arrived here."""
        if isinstance(report, Report):
            self.count += 1
        elif self.waiting and isinstance(last := self.waiting[-1], int):
            self.waiting.pop()
            report += last
        self.waiting.append(report)
        while self.count > self.limit:
            self._drop_oldest()

    def next(self, now: float) -> Report | int | None:  # noqa: ARG002  a report never waits for others
        """Remove and return the next item."""
        one = self.waiting.popleft() if self.waiting else None
        self.count -= isinstance(one, Report)
        return one

    def drop(self) -> None:
        """Drop all that waits."""
        while self.waiting:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        oldest = self.waiting.popleft()
        self.count -= isinstance(oldest, Report)
        self.lost += oldest if isinstance(oldest, int) else 1


@define(eq=False)
class TextStream:
    """A text of a call, which may come from several sources.

    Attributes:
        seconds: the time for which text is collected; 0 to deliver it at once.
        limit: the size in bytes of a text that is delivered at once, and the maximum size of the text of one event.
        offset: the number of bytes that were delivered or are in a delivered gap.
        lost: the number of bytes that were dropped since, before the first waiting one.
        size: the number of waiting bytes.
        due: when a short text is delivered; ``None`` if none waits, or the time is not known yet.
        is_closing: whether no more text follows.
    """

    seconds: float = FLUSH_SECONDS
    limit: int = FLUSH_BYTES
    offset: int = 0
    lost: int = 0
    size: int = 0
    due: float | None = None
    is_closing: bool = False
    waiting: deque[Chunk] = field(factory=deque)

    def add(self, source: str, text: str) -> bool:
        """Add text, and return whether there is a new reason to look at the stream: a first text, or a large one."""
        before = len(self.waiting)
        while text:
            last = self.waiting[-1] if self.waiting else None
            if last is None or last.source != source or last.size + 4 > self.limit:
                last = Chunk(source, "", 0)
                self.waiting.append(last)
            head, size = _beginning(text, self.limit - last.size)
            last.text, text = last.text + head, text[len(head) :]
            last.size += size
            self.size += size
        return len(self.waiting) != before

    def next(self, now: float) -> Chunk | None:
        """Remove and return the next text, if it is large enough or has waited long enough."""
        if not self.waiting:
            return None
        if len(self.waiting) == 1 and not self.is_closing:
            if self.due is None:
                self.due = now + self.seconds
            if now < self.due:
                return None
        self.due = None
        chunk = self.waiting.popleft()
        self.size -= chunk.size
        return chunk

    @property
    def weight(self) -> int:
        """The memory that the waiting texts take, in bytes."""
        return self.size + _CHUNK_BYTES * len(self.waiting)

    def drop_oldest(self) -> int:
        """Drop the oldest text, and return the memory that it took."""
        chunk = self.waiting.popleft()
        self.size -= chunk.size
        self.lost += chunk.size
        return chunk.size + _CHUNK_BYTES

    def drop(self) -> None:
        """Drop all waiting text."""
        while self.waiting:
            self.drop_oldest()


def _beginning(text: str, limit: int) -> tuple[str, int]:
    """Return the longest beginning of a text that has at most ``limit`` bytes in UTF-8, and its size."""
    head = text[:limit]
    if head.isascii():
        return head, len(head)
    data = head.encode()
    if len(data) > limit:
        head = data[:limit].decode("utf-8", "ignore")
        return head, len(head.encode())
    return head, len(data)
