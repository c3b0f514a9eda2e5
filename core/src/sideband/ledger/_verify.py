"""Is the record whole? Reads every line, follows the chain over all segments, and compares the stored head."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anyio import to_thread
from attrs import define, field, frozen

from ..store import Store
from ._head import load_head
from ._lines import GENESIS, VERSION, Head, LedgerLine, LineInvalid, parse
from ._lock import folder_lock, held
from ._segments import lines, segment_numbers, segment_path

_LINES_A_STEP = 5_000
_MOST_PROBLEMS = 100
_LOCK_PATIENCE = 10.0


@frozen
class Problem:
    """Something that is wrong, and where.

    Args:
        segment: the name of the file; empty if it is about the ledger as a whole.
        line: the number of the line in it, from 1; 0 if it is about the file as a whole.
        reason: what is wrong, in one sentence.
    """

    segment: str
    line: int
    reason: str

    def __str__(self) -> str:
        where = f"{self.segment}, line {self.line}: " if self.line else f"{self.segment}: " if self.segment else ""
        return where + self.reason


@frozen
class Verification:
    """What ``verify`` found.

    Attributes:
        ok: whether every entry that was ever known to be written is there, unchanged and in order.
        entries: how many entries were read.
        problems: what is wrong, in the order of the files; at most 100.
        head: the last entry, or ``None`` if there is none.
        notices: what is worth knowing and not wrong: a torn line that was removed after a crash, a head that was lost.
    """

    ok: bool
    entries: int
    problems: tuple[Problem, ...]
    head: Head | None
    notices: tuple[Problem, ...] = ()


async def verify(folder: Path, store: Store) -> Verification:
    """Check the whole ledger in ``folder``. Hosts may go on writing; what they add meanwhile is not looked at.

    It finds whatever was changed, removed, inserted, repeated, reordered or cut off by someone who can write to the
    ledger and not to the store. It can't find what the host's own user forges with both.

    Args:
        folder: the ledger's folder.
        store: the store that keeps the head.

    Raises:
        LedgerUnwritable: the folder can't be read or locked.
        LedgerBusy: it was locked for too long.

    Example:
        >>> verdict = await verify(home / "ledger", store)
        >>> print("whole" if verdict.ok else verdict.problems[0])
    """
    # The head first: the files may only be ahead of it.
    stored = await load_head(store)
    extents = await _extents(folder)
    if extents and stored is None:
        # The first host may just have begun; it stores a head before it writes a line.
        stored = await load_head(store)
        extents = await _extents(folder)
    check = _Check(folder, extents, stored)
    steps = check.run()
    while await to_thread.run_sync(next, steps, False):
        pass
    return check.verdict()


async def _extents(folder: Path) -> list[tuple[int, int]]:
    """The segments and their sizes at one moment in which no host is writing."""
    if not await to_thread.run_sync(folder.is_dir):
        return []
    with folder_lock(folder) as lock:
        async with held(lock, _LOCK_PATIENCE):
            return [(number, segment_path(folder, number).stat().st_size) for number in segment_numbers(folder)]


@define
class _Check:
    """One verification under way."""

    folder: Path
    extents: list[tuple[int, int]]
    stored: Head | None
    entries: int = 0
    head: Head | None = None
    _problems: list[Problem] = field(factory=list)
    _notices: list[Problem] = field(factory=list)
    # What the next line must say; the hash is unknown after a line that can't be read.
    _seq: int = 1
    _prev: str | None = GENESIS
    _kind: str = "rotate"
    _head_found: bool = False

    def run(self) -> Iterator[bool]:
        """Check everything, with a pause (``True``) after every few thousand lines."""
        expected = 1
        for number, size in self.extents:
            name = segment_path(self.folder, number).name
            if number != expected:
                self._problem(name, 0, f"segment {expected} is missing before it")
            elif self._kind != "rotate" and size:
                self._problem(name, 0, "the segment before it does not end with a `rotate` line")
            yield from self._segment(number, size, name)
            expected = number + 1
        self._compare_head()

    def verdict(self) -> Verification:
        """What was found."""
        return Verification(not self._problems, self.entries, tuple(self._problems), self.head, tuple(self._notices))

    def _segment(self, number: int, size: int, name: str) -> Iterator[bool]:
        end, count = 0, 0
        for start, raw in lines(self.folder, number, stop=size):
            end, count = start + len(raw) + 1, count + 1
            self._line(Head(number, end, 0, ""), name, count, raw)
            if count % _LINES_A_STEP == 0:
                yield True
        if end < size:
            self._problem(
                name,
                count + 1,
                "it is incomplete: cut off, or a host was stopped while it wrote it "
                "(then the next host that writes removes it, and says so in the ledger)",
            )

    def _line(self, place: Head, name: str, number: int, raw: bytes) -> None:
        self.entries += 1
        try:
            line = parse(raw)
        except LineInvalid as error:
            self._problem(name, number, f"it is not an entry: {error}")
            self._seq, self._prev, self._kind = self._seq + 1, None, ""
            return
        reason = self._wrong_place(line) if line.intact else "it was changed: its hash does not fit its content"
        reason = reason or _wrong_content(line)
        if reason:
            self._problem(name, number, reason)
        elif line.kind == "recovery":
            self._notices.append(Problem(name, number, _recovered(line)))
        self.head = Head(place.segment, place.size, line.seq, line.hash)
        self._head_found = self._head_found or (line.intact and self.head == self.stored)
        self._seq, self._prev, self._kind = line.seq + 1, line.hash, line.kind

    def _wrong_place(self, line: LedgerLine) -> str:
        if line.seq > self._seq:
            return f"entries {self._seq} to {line.seq - 1} are missing before it"
        if line.seq < self._seq:
            return f"entry {line.seq} stands where entry {self._seq} belongs: repeated, inserted or out of order"
        if self._prev is not None and line.prev != self._prev:
            return "it does not follow the line before it"
        return ""

    def _compare_head(self) -> None:
        if self.stored is None:
            if self.entries:
                self._problem("", 0, "the store holds no head, so whether the end was cut off can't be told")
        elif (last := self.head.seq if self.head else 0) < self.stored.seq:
            self._problem("", 0, f"the end was cut off: entry {self.stored.seq} was written, and the last is {last}")
        elif self.stored.seq and not self._head_found:
            self._problem("", 0, f"entry {self.stored.seq} is not the one that the store knows")

    def _problem(self, segment: str, line: int, reason: str) -> None:
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems.append(Problem(segment, line, reason))


def _recovered(line: LedgerLine) -> str:
    if line.fields.get("problem") == "head":
        return "when this was written, the store held no head: whether lines before it were cut off can't be told"
    return f"a torn line of {line.fields.get('bytes')} bytes was removed before this was written"


def _wrong_content(line: LedgerLine) -> str:
    if line.fields.get("v") != VERSION:
        return f"it has format {line.fields.get('v')!r}, and this version of sideband knows format {VERSION}"
    if line.kind == "mismatch":
        return "when this was written, entries were gone that had been written before: it says up to which"
    return ""
