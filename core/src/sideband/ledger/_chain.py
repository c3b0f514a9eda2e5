"""The writer: one chain of lines in numbered segments, shared by all hosts that use the folder.

Appending is synchronous and short: a non-blocking lock, one ``write``, no thread. If the lock is taken, the caller
retries. The size of the segment shows whether another host has written to it. A full segment ends with a ``rotate``
line, so that its size changes too.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from time import time_ns

from attrs import Factory, define, evolve, field

from ..state import FileLock, sync_folder
from ._errors import LedgerDamaged, LedgerError, LedgerUnwritable
from ._keys import KeyTable
from ._lines import GENESIS, Draft, Head, LedgerLine, LineInvalid, draft, parse, seal
from ._lock import folder_lock
from ._segments import Mark, Tail, contains, make_folder, open_segment, read_tail, segment_numbers, segment_path

_log = logging.getLogger("sideband.ledger")
EMPTY = Head(segment=1, size=0, seq=0, hash=GENESIS)


@define
class Chain:
    """The writing end of the ledger, which appends lines and maintains the head.

    Args:
        folder: the folder of the segments.
        host: the id of the writing host, which is named in ``recovery`` and ``mismatch`` lines.
        rotate_bytes: the size in bytes at which a new segment is started.
        head: the last head known to have been written, from the store. The files must contain it.

    Attributes:
        keys: the idempotency keys of the lines.
        written: the number of appends.
        lost: the last head that was missing from the files.
        failure: the error of a sync that failed. Lines may be lost in a power failure since then.
        headless: whether the store had no head. If the ledger has lines, this is recorded in it.
    """

    folder: Path
    host: str
    rotate_bytes: int
    head: Head = EMPTY
    lock: FileLock = field(init=False, default=Factory(lambda self: folder_lock(self.folder), takes_self=True))
    keys: KeyTable = field(init=False, default=Factory(lambda self: KeyTable(self.folder), takes_self=True))
    written: int = field(default=0, init=False)
    lost: Head | None = field(default=None, init=False)
    failure: OSError | None = field(default=None, init=False)
    headless: bool = field(default=False, init=False)
    _descriptor: int | None = field(default=None, init=False)
    _rotated: bool = field(default=False, init=False)
    _notices: list[Draft] = field(factory=list, init=False)

    def prepare(self) -> None:
        """Create the folder."""
        try:
            make_folder(self.folder)
        except OSError as error:
            raise LedgerUnwritable(self.folder, error) from error

    def append(self, entry: Draft, unless: Callable[[], bool] | None = None) -> bool:
        """Write an entry, or return ``False`` if another host holds the lock. The caller may hold it too.

        Args:
            entry: the entry.
            unless: called under the lock. If it returns true or raises, nothing is written.

        Raises:
            LedgerUnwritable: if the entry could not be written.
            LedgerDamaged: if the last line of the ledger is invalid.
        """
        try:
            if not self.lock.try_acquire():
                return False
            try:
                self._catch_up()
                if unless is None or not unless():
                    self._write(entry)
            finally:
                self.lock.release()
        except LedgerError:
            raise
        except OSError as error:
            raise LedgerUnwritable(self.folder, error) from error
        return True

    @property
    def is_waiting(self) -> bool:
        """Whether there are entries that will be written together with the next one."""
        return bool(self._notices)

    def write_first(self, entry: Draft) -> None:
        """Write an entry together with the next one, before it."""
        self._notices.append(entry)

    def read_keys(self) -> None:
        """Read the keys of the lines up to the head. The caller must hold the lock.

        Raises:
            KeysBehind: if that would take too long.
        """
        self.keys.read()
        self.keys.behind = None

    def duplicate(self) -> list[int]:
        """Return a duplicate descriptor of the current segment, if any, for syncing. The caller must close it."""
        return [] if self._descriptor is None else [os.dup(self._descriptor)]

    def close(self) -> None:
        """Close the files."""
        self.lock.close()
        self.keys.close()
        self._close_segment()

    def _close_segment(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _catch_up(self) -> None:
        # After a `rotate` line, another host may have written to the next segment without changing this one.
        if self._descriptor is not None and not self._rotated:
            status = os.fstat(self._descriptor)
            if status.st_size == self.head.size and status.st_nlink:
                return
        self._resume()

    def _resume(self) -> None:
        """Find the end of the ledger again, and record its problems as notices."""
        if self.keys.behind is None:
            self.keys.behind = Mark(self.head.segment, self.head.size)
        numbers = segment_numbers(self.folder)
        if self.head != self.lost and not contains(self.folder, self.head):
            self.lost = self.head
            self.keys.close()
            self.keys = KeyTable(self.folder)
            _log.warning("ledger %s no longer contains entry %d", self.folder, self.head.seq)
            self._notice("mismatch", expected=self.head.as_dict())
        self._close_segment()
        # If the last segment was created but never written to, the ledger ends in the previous one.
        for number in reversed(numbers):
            if self._resume_in(number):
                if self.headless:
                    self._notice("recovery", problem="head")
                break
        else:
            self.head, self._rotated = evolve(EMPTY, segment=numbers[0] if numbers else 1), False
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
            raise LedgerDamaged(path, f"the last line is not an entry: {error}") from error
        if not line.intact:
            raise LedgerDamaged(path, "the hash of the last line does not match its content")
        return line

    def _cut_torn_line(self, descriptor: int, tail: Tail) -> None:
        _log.warning("removed an incomplete line of %d bytes from the end of ledger %s", tail.torn, self.folder)
        os.ftruncate(descriptor, tail.end)
        self._notice("recovery", problem="torn", bytes=tail.torn)

    def _notice(self, kind: str, **fields: object) -> None:
        self._notices.append(draft({"kind": kind, "host": self.host, **fields}))

    def _create(self, number: int) -> int:
        descriptor = open_segment(self.folder, number, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            sync_folder(self.folder)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _write(self, entry: Draft) -> None:
        start = self._start_segment() if self._rotated else self.head
        data, head, keyed = _seal_all([*self._notices, entry], start)
        rotates = head.size >= self.rotate_bytes
        if rotates:
            last, head, _ = _seal_all([draft({"kind": "rotate", "next": head.segment + 1})], head)
            data += last
        assert self._descriptor is not None  # noqa: S101 -- _catch_up opened it
        _write_whole(self._descriptor, data, start.size)
        self.head, self._rotated = head, rotates
        self.written += 1
        for words, place in keyed:
            self.keys.add(words, place)
        self._notices.clear()

    def _start_segment(self) -> Head:
        """Start a new segment. Sync the old one first: a power failure must not leave a gap between segments."""
        if self._descriptor is not None and self.failure is None:
            try:
                sync_data(self._descriptor)
            except OSError as error:
                self.failure = error  # no further sync succeeds, but outcomes of running effects are still written
        number = self.head.segment + 1
        descriptor = self._create(number)
        self._close_segment()
        self._descriptor = descriptor
        return evolve(self.head, segment=number, size=0)


def sync_data(descriptor: int) -> None:
    """Write the data of a file to disk. macOS has no fdatasync."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def _seal_all(entries: Sequence[Draft], head: Head) -> tuple[bytes, Head, list[tuple[tuple[str, ...], Mark]]]:
    """Return the encoded lines of ``entries`` after ``head``, the resulting head, and the places of keys."""
    seconds, microseconds = divmod(time_ns() // 1_000, 1_000_000)
    now = f"{_second(seconds)}.{microseconds:06}+00:00"
    data, seq, digest = b"", head.seq, head.hash
    keyed = []
    for entry in entries:
        seq += 1
        if entry.keyed:
            keyed.append((entry.keyed, Mark(head.segment, head.size + len(data))))
        raw, digest = seal(entry, seq, now, digest)
        data = data + raw if data else raw
    return data, Head(head.segment, head.size + len(data), seq, digest), keyed


@lru_cache(1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def _write_whole(descriptor: int, data: bytes, size: int) -> None:
    """Append all of ``data`` to a file of ``size`` bytes, or restore the file."""
    written = 0
    try:
        while written < len(data):
            written += os.write(descriptor, data[written:])
    except OSError:
        os.ftruncate(descriptor, size)
        raise
