"""Verify the ledger: read every line, follow the hash chain across all segments, and compare the stored head."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anyio import to_thread
from attrs import define, field, frozen

from ..store import Store
from ._head import head_key, load_head
from ._lines import GENESIS, READABLE, Head, LedgerLine, LineInvalid, parse
from ._lock import folder_lock, held
from ._segments import lines, segment_numbers, segment_path

_LINES_PER_STEP = 5_000
_MAX_PROBLEMS = 100
_LOCK_PATIENCE = 10.0


@frozen
class Problem:
    """A problem and its location.

    Args:
        segment: the name of the file, or an empty string for the ledger as a whole.
        line: the number of the line in the file, from 1, or 0 for the file as a whole.
        reason: one sentence that describes the problem.
    """

    segment: str
    line: int
    reason: str

    def __str__(self) -> str:
        where = f"{self.segment}, line {self.line}: " if self.line else f"{self.segment}: " if self.segment else ""
        return where + self.reason


@frozen
class Verification:
    """The result of ``verify``.

    Attributes:
        ok: whether every entry known to have been written exists, unchanged and in order.
        entries: the number of entries read.
        problems: the problems in the order of the files, at most 100.
        head: the end of the ledger, or ``None`` if it is empty.
        notices: events that are not problems: an incomplete line removed after a crash, a lost head.
    """

    ok: bool
    entries: int
    problems: tuple[Problem, ...]
    head: Head | None
    notices: tuple[Problem, ...] = ()


async def verify(folder: Path, store: Store) -> Verification:
    """Check the whole ledger in ``folder``. Hosts may continue to write; entries added during the check are ignored.

    It detects entries that were changed, removed, inserted, repeated, reordered or truncated by an attacker who can
    write to the ledger but not to the store. It cannot detect a forgery by an attacker who can write to both, such as
    the host's own user.

    Args:
        folder: the ledger's folder.
        store: the store that holds the head.

    Raises:
        LedgerUnwritable: if the folder cannot be read or locked.
        LedgerBusy: if another process held the lock for too long.

    Example:
        >>> verdict = await verify(home / "ledger", store)
        >>> print("intact" if verdict.ok else verdict.problems[0])
    """
    # Read the head first, so that the files are never behind it.
    key = await to_thread.run_sync(head_key, folder, store)
    stored = await load_head(store, key)
    extents = await _extents(folder)
    if extents and stored is None:
        # The first host may just have started. It stores a head before it writes a line, so read the head again.
        stored = await load_head(store, key)
        extents = await _extents(folder)
    check = _Check(folder, extents, stored)
    steps = check.run()
    while await to_thread.run_sync(next, steps, False):
        pass
    return check.verdict()


async def _extents(folder: Path) -> list[tuple[int, int]]:
    """Return the segments and their sizes at a moment when no host is writing."""
    if not await to_thread.run_sync(folder.is_dir):
        return []
    with folder_lock(folder) as lock:
        async with held(lock, _LOCK_PATIENCE):
            return [(number, segment_path(folder, number).stat().st_size) for number in segment_numbers(folder)]


@define
class _Check:
    """A running verification."""

    folder: Path
    extents: list[tuple[int, int]]
    stored: Head | None
    entries: int = 0
    head: Head | None = None
    _problems: list[Problem] = field(factory=list)
    _notices: list[Problem] = field(factory=list)
    # The expected values of the next line. The hash is unknown after an unreadable line.
    _seq: int = 1
    _prev: str | None = GENESIS
    _kind: str = "rotate"
    _head_found: bool = False
    _erased: list[int] = field(factory=list)  # the lines of this segment whose content was erased

    def run(self) -> Iterator[bool]:
        """Check everything, and yield ``True`` after each batch of some thousand lines."""
        expected = 1
        for number, size in self.extents:
            name = segment_path(self.folder, number).name
            if number != expected:
                self._problem(name, 0, f"segment {expected} is missing before this one")
            elif self._kind != "rotate" and size:
                self._problem(name, 0, "the previous segment does not end with a `rotate` line")
            yield from self._segment(number, size, name)
            expected = number + 1
        self._compare_head()

    def verdict(self) -> Verification:
        """Return the result."""
        return Verification(not self._problems, self.entries, tuple(self._problems), self.head, tuple(self._notices))

    def _segment(self, number: int, size: int, name: str) -> Iterator[bool]:
        end, count = 0, 0
        for start, raw in lines(self.folder, number, stop=size):
            end, count = start + len(raw) + 1, count + 1
            self._line(Head(number, end, 0, ""), name, count, raw)
            if count % _LINES_PER_STEP == 0:
                yield True
        if end < size:
            self._problem(
                name,
                count + 1,
                "the line is incomplete: truncated, or a host was killed while writing it "
                "(the next host that writes removes such a line and records the removal)",
            )
        if self._erased:
            # One problem for all of them, so that they don't hide others.
            others = f", also in {len(self._erased) - 1} later lines" if len(self._erased) > 1 else ""
            self._problem(name, self._erased[0], f"the content was erased{others}")
            self._erased = []

    def _line(self, place: Head, name: str, number: int, raw: bytes) -> None:
        self.entries += 1
        try:
            line = parse(raw)
        except LineInvalid as error:
            self._problem(name, number, f"not an entry: {error}")
            self._seq, self._prev, self._kind = self._seq + 1, None, ""
            return
        reason = self._wrong_place(line) if line.intact else "the line was changed: its hash does not match its content"
        reason = reason or _wrong_content(line)
        if reason:
            self._problem(name, number, reason)
        elif line.kind == "recovery":
            self._notices.append(Problem(name, number, _recovered(line)))
        if line.content == "erased":
            self._erased.append(number)
        self.head = Head(place.segment, place.size, line.seq, line.hash)
        self._head_found = self._head_found or (line.intact and self.head == self.stored)
        self._seq, self._prev, self._kind = line.seq + 1, line.hash, line.kind

    def _wrong_place(self, line: LedgerLine) -> str:
        if line.seq > self._seq:
            return f"entries {self._seq} to {line.seq - 1} are missing before this line"
        if line.seq < self._seq:
            return f"expected entry {self._seq}, found entry {line.seq}: repeated, inserted or out of order"
        if self._prev is not None and line.prev != self._prev:
            return "the line does not follow the previous line"
        return ""

    def _compare_head(self) -> None:
        if self.stored is None:
            if self.entries:
                self._problem("", 0, "the store has no head, so a truncated ledger cannot be detected")
        elif (last := self.head.seq if self.head else 0) < self.stored.seq:
            self._problem(
                "", 0, f"the ledger is truncated: entry {self.stored.seq} was written, but the last is {last}"
            )
        elif self.stored.seq and not self._head_found:
            self._problem("", 0, f"entry {self.stored.seq} does not match the head in the store")

    def _problem(self, segment: str, line: int, reason: str) -> None:
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(Problem(segment, line, reason))


def _recovered(line: LedgerLine) -> str:
    if line.fields.get("problem") == "head":
        return "the store had no head when this line was written: lines before it may have been truncated undetected"
    return f"an incomplete line of {line.fields.get('bytes')} bytes was removed before this line was written"


def _wrong_content(line: LedgerLine) -> str:
    if line.fields.get("v") not in READABLE:
        return f"unsupported format {line.fields.get('v')!r}, expected {' or '.join(map(str, READABLE))}"
    if line.content == "changed":
        return "the content was changed: it does not match its digest"
    if line.kind == "mismatch":
        return "entries were missing when this line was written; `expected` is the last entry that had been written"
    return ""
