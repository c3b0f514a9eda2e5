"""The writing end: one chain of lines in numbered segments, shared by all hosts that use the folder.

All of it is synchronous and short: a lock that is never waited for, one ``write``, no thread. Whoever finds the lock
taken tries again. What another host wrote in the meantime is seen by the size of the segment; a full segment ends with
a ``rotate`` line, so that its size changes too.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import Factory, define, evolve, field

from ..state import FileLock, sync_folder
from ._errors import LedgerDamaged, LedgerError, LedgerUnwritable
from ._lines import GENESIS, VERSION, Head, LedgerLine, LineInvalid, parse, seal
from ._lock import folder_lock
from ._segments import Tail, contains, make_folder, open_segment, read_tail, segment_numbers, segment_path

_log = logging.getLogger("sideband.ledger")
# macOS has no fdatasync.
sync_data = getattr(os, "fdatasync", os.fsync)
_EMPTY = Head(segment=1, size=0, seq=0, hash=GENESIS)


@define
class Chain:
    """Appends lines and keeps the head.

    Args:
        folder: where the segments are.
        host: who writes; named in ``recovery`` and ``mismatch`` lines.
        rotate_bytes: a segment that has reached this size is followed by a new one.
        head: the last head that is known to have been written (from the store); the files must contain it.

    Attributes:
        written: how many appends were made.
        lost: the last head that the files turned out not to contain.
        headless: set when the store held no head, which is noted if there are lines.
    """

    folder: Path
    host: str
    rotate_bytes: int
    head: Head = _EMPTY
    lock: FileLock = field(init=False, default=Factory(lambda self: folder_lock(self.folder), takes_self=True))
    written: int = field(default=0, init=False)
    lost: Head | None = field(default=None, init=False)
    headless: bool = field(default=False, init=False)
    _descriptor: int | None = field(default=None, init=False)
    _rotated: bool = field(default=False, init=False)
    _notices: list[dict[str, Any]] = field(factory=list, init=False)

    def prepare(self) -> None:
        """Make the folder."""
        try:
            make_folder(self.folder)
        except OSError as error:
            raise LedgerUnwritable(self.folder, error) from error

    def append(self, entries: Sequence[Mapping[str, Any]]) -> bool:
        """Write entries, all or none; ``False`` if another host is writing at this moment.

        Raises:
            LedgerUnwritable: nothing of them was written.
            LedgerDamaged: what stands at the end of the ledger can't be continued.
        """
        try:
            if not self.lock.try_acquire():
                return False
            try:
                self.append_locked(entries)
            finally:
                self.lock.release()
        except LedgerError:
            raise
        except OSError as error:
            raise LedgerUnwritable(self.folder, error) from error
        return True

    def append_locked(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """``append`` for a caller that holds the lock, and for which the system's errors are told as ours."""
        self._catch_up()
        self._write(entries)

    def duplicate(self) -> int | None:
        """A descriptor of the current segment for whoever syncs it; the caller closes it."""
        return None if self._descriptor is None else os.dup(self._descriptor)

    def close(self) -> None:
        """Close the files."""
        self.lock.close()
        self._close_segment()

    def _close_segment(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _catch_up(self) -> None:
        # After a `rotate` line, whether the next segment has lines already can't be told from this one.
        if self._descriptor is not None and not self._rotated:
            status = os.fstat(self._descriptor)
            if status.st_size == self.head.size and status.st_nlink:
                return
        self._resume()

    def _resume(self) -> None:
        """Find the end of the ledger again, and note what is wrong with it."""
        numbers = segment_numbers(self.folder)
        if not contains(self.folder, self.head):
            self.lost = self.head
            _log.warning("the ledger %s does not contain its entry %d any more", self.folder, self.head.seq)
            self._notices.append({"kind": "mismatch", "host": self.host, "expected": self.head.as_dict()})
        self._close_segment()
        self.head, self._rotated = evolve(_EMPTY, segment=numbers[0] if numbers else 1), False
        # A segment that was made but never written to leaves the end in the one before it.
        for number in reversed(numbers):
            if self._resume_in(number):
                if self.headless:
                    self._notices.append({"kind": "recovery", "host": self.host, "problem": "head"})
                break
        else:
            self._descriptor = self._create(self.head.segment)
        self.headless = False

    def _resume_in(self, number: int) -> bool:
        """Make ``number`` the current segment, if it has a line."""
        descriptor = open_segment(self.folder, number, os.O_RDWR | os.O_APPEND)
        try:
            tail = read_tail(descriptor)
            if tail.torn:
                self._cut_torn_line(descriptor, tail)
            if tail.line is not None:
                line = self._last(number, tail.line)
                self.head, self._rotated = Head(number, tail.end, line.seq, line.hash), line.kind == "rotate"
                self._descriptor = descriptor
        finally:
            if self._descriptor is None:
                os.close(descriptor)
        return self._descriptor is not None

    def _last(self, number: int, raw: bytes) -> LedgerLine:
        path = segment_path(self.folder, number)
        try:
            line = parse(raw)
        except LineInvalid as error:
            raise LedgerDamaged(path, f"its last line is not an entry: {error}") from error
        if not line.intact:
            raise LedgerDamaged(path, "the hash of its last line does not fit its content")
        return line

    def _cut_torn_line(self, descriptor: int, tail: Tail) -> None:
        _log.warning("a torn line of %d bytes was removed from the end of the ledger %s", tail.torn, self.folder)
        os.ftruncate(descriptor, tail.end)
        self._notices.append({"kind": "recovery", "host": self.host, "problem": "torn", "bytes": tail.torn})

    def _create(self, number: int) -> int:
        descriptor = open_segment(self.folder, number, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            sync_folder(self.folder)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _write(self, entries: Sequence[Mapping[str, Any]]) -> None:
        start = self._start_segment() if self._rotated else self.head
        data, head = _seal_all([*self._notices, *entries] if self._notices else entries, start)
        rotates = head.size >= self.rotate_bytes
        if rotates:
            last, head = _seal_all([{"kind": "rotate", "next": head.segment + 1}], head)
            data += last
        assert self._descriptor is not None  # noqa: S101 -- _catch_up opened it
        _write_whole(self._descriptor, data, start.size)
        self.head, self._rotated = head, rotates
        self.written += 1
        if self._notices:
            self._notices.clear()

    def _start_segment(self) -> Head:
        """Go on in a new segment, once all of the old one is on disk: a power cut must not leave a gap between them."""
        if self._descriptor is not None:
            sync_data(self._descriptor)
        number = self.head.segment + 1
        descriptor = self._create(number)
        self._close_segment()
        self._descriptor = descriptor
        return evolve(self.head, segment=number, size=0)


def _seal_all(entries: Sequence[Mapping[str, Any]], head: Head) -> tuple[bytes, Head]:
    """The bytes of ``entries`` as they follow ``head``, and the head after them."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    data, seq, digest = b"", head.seq, head.hash
    for entry in entries:
        seq += 1
        raw, digest = seal({"v": VERSION, "seq": seq, "time": now, "prev": digest, **entry}, digest)
        data = data + raw if data else raw
    return data, Head(head.segment, head.size + len(data), seq, digest)


def _write_whole(descriptor: int, data: bytes, size: int) -> None:
    """Append ``data`` to a file of ``size`` bytes, or leave the file as it was."""
    written = os.write(descriptor, data)
    if written == len(data):
        return
    try:
        while written < len(data):
            written += os.write(descriptor, data[written:])
    except OSError:
        os.ftruncate(descriptor, size)
        raise
