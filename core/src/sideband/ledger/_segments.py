"""The files of a ledger: numbered segments, with functions that find lines without reading whole files."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path

from attrs import frozen

from ._lines import Head, LineInvalid, parse

_SUFFIX = ".jsonl"
_BLOCK = 64 * 1024
_LONG_BLOCK = 1024 * 1024


@frozen(order=True)
class Mark:
    """A position in the ledger: a segment and a byte offset in it."""

    segment: int = 1
    offset: int = 0


@frozen
class Tail:
    """The end of a segment.

    Attributes:
        line: the last complete line, or ``None``.
        end: the offset of the end of that line.
        torn: the number of bytes of an incomplete line after it.
    """

    line: bytes | None
    end: int
    torn: int


def make_folder(folder: Path) -> None:
    """Create the folder and its parents. Only its owner has access to it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def segment_path(folder: Path, number: int) -> Path:
    """Return the path of the segment ``number`` (from 1)."""
    return folder / f"{number:08d}{_SUFFIX}"


def segment_numbers(folder: Path) -> list[int]:
    """Return the numbers of the existing segments, sorted."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 -- runs for each write when hosts alternate
    except FileNotFoundError:
        return []
    stems = (name[: -len(_SUFFIX)] for name in names if name.endswith(_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdecimal() and len(stem) >= 8)


def open_segment(folder: Path, number: int, flags: int) -> int:
    """Open a segment's file. Symbolic links are not followed."""
    return os.open(segment_path(folder, number), flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def read_tail(descriptor: int, most: int = sys.maxsize) -> Tail:
    """Return the end of a segment, or of its first ``most`` bytes, by reading it backwards."""
    size = min(most, os.fstat(descriptor).st_size)
    start, data = size, b""
    while start > 0:
        block = min(_BLOCK, start)
        start -= block
        data = os.pread(descriptor, block, start) + data
        end = data.rfind(b"\n")
        before = data.rfind(b"\n", 0, end) if end >= 0 else -1
        if before >= 0 or (start == 0 and end >= 0):
            return Tail(data[before + 1 : end], start + end + 1, len(data) - end - 1)
    return Tail(None, 0, size)


def contains(folder: Path, head: Head) -> bool:
    """Return whether the line that ``head`` describes exists at that position."""
    if head.seq == 0:
        return True
    try:
        descriptor = open_segment(folder, head.segment, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        tail = read_tail(descriptor, head.size)
    finally:
        os.close(descriptor)
    if tail.line is None or tail.end != head.size:
        return False
    try:
        line = parse(tail.line)
    except LineInvalid:
        return False
    return line.intact and line.hash == head.hash and line.seq == head.seq


def lines_from(folder: Path, segment: int, start: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield the complete lines of a ledger from byte ``start`` of a segment, each with its segment and offset."""
    for number in segment_numbers(folder):
        if number >= segment:
            for begin, raw in lines(folder, number, start if number == segment else 0):
                yield number, begin, raw


def size_from(folder: Path, start: Mark) -> int:
    """Return the number of bytes of a ledger from this position on."""
    numbers = [number for number in segment_numbers(folder) if number >= start.segment]
    sizes = sum(segment_path(folder, number).stat().st_size for number in numbers)
    return sizes - (start.offset if start.segment in numbers else 0)


def lines(folder: Path, number: int, start: int = 0, stop: int | None = None) -> Generator[tuple[int, bytes]]:
    """Yield the complete lines of a segment between bytes ``start`` and ``stop``, without newline, with their offsets.

    An incomplete last line is skipped.
    """
    with os.fdopen(open_segment(folder, number, os.O_RDONLY), "rb") as file:
        file.seek(start)
        for line in file:
            end = start + len(line)
            if not line.endswith(b"\n") or (stop is not None and end > stop):
                return
            yield start, line[:-1]
            start = end


def line_at(folder: Path, number: int, start: int) -> bytes | None:
    """Return the line that begins at byte ``start``, without newline, or ``None`` if it does not exist."""
    with suppress(FileNotFoundError), closing(lines(folder, number, start)) as found:
        for _, raw in found:
            return raw
    return None


def lines_backwards(folder: Path, needle: bytes = b"") -> Iterator[bytes]:
    """Yield the complete lines of a ledger that contain ``needle``, without newline, last line first."""
    for number in reversed(segment_numbers(folder)):
        yield from _segment_backwards(folder, number, needle)


def _segment_backwards(folder: Path, number: int, needle: bytes) -> Iterator[bytes]:
    descriptor = open_segment(folder, number, os.O_RDONLY)
    try:
        position, rest = read_tail(descriptor).end, b""
        while position > 0:
            start = max(0, position - _LONG_BLOCK)
            data = os.pread(descriptor, position - start, start) + rest
            position = start
            # The bytes before the first newline belong to a line that begins in the previous block.
            cut = data.find(b"\n") + 1 if start else 0
            rest, whole = data[:cut], data[cut:]
            if needle in whole:
                yield from (line for line in reversed(whole.split(b"\n")[:-1]) if needle in line)
    finally:
        os.close(descriptor)
