"""List the entries of a folder. Blocks."""

from __future__ import annotations

import contextlib
import heapq
import os
import stat
from collections.abc import Iterator
from typing import Literal

from anyio import from_thread
from attrs import frozen

_LOOK_AFTER = 1_000

EntryKind = Literal["file", "folder", "link", "other"]
"""The kind of an entry of a folder."""


@frozen
class FolderEntry:
    """The metadata of one name in a folder.

    Attributes:
        name: the last component of its path.
        kind: a symbolic link is a ``link`` whatever its target is; ``other`` is a pipe, a socket or a device.
        size: bytes of a file, 0 for any other kind.
        modified: when its content was last changed, in seconds since 1970.
        permissions: the lower nine bits of its mode.
    """

    name: str
    kind: EntryKind
    size: int
    modified: float
    permissions: int


@frozen
class Listing:
    """Some entries of a folder.

    Attributes:
        entries: sorted by name.
        truncated: whether more entries follow.
        left_out: the number of names omitted because they are hidden or not valid UTF-8.
    """

    entries: tuple[FolderEntry, ...]
    truncated: bool
    left_out: int


def entry_of(name: str, found: os.stat_result) -> FolderEntry:
    """Build the entry of a name from its ``stat`` result."""
    kinds: dict[int, EntryKind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(found.st_mode), "other")
    size = found.st_size if kind == "file" else 0
    return FolderEntry(name, kind, size, found.st_mtime, stat.S_IMODE(found.st_mode) & 0o777)


def list_folder(folder: int, limit: int, after: str, *, hidden: bool) -> Listing:
    """Implement ``ConfinedFolder.list``. Keeps at most ``limit`` + 1 names in memory."""
    left_out = 0

    def names() -> Iterator[str]:
        nonlocal left_out
        with os.scandir(folder) as found:
            for number, one in enumerate(found):
                if number % _LOOK_AFTER == 0:
                    from_thread.check_cancelled()
                if not is_text(one.name) or (one.name.startswith(".") and not hidden):
                    left_out += 1
                elif one.name > after:
                    yield one.name

    chosen = heapq.nsmallest(limit + 1, names())
    entries = []
    for name in chosen[:limit]:
        # it may have been removed meanwhile
        with contextlib.suppress(FileNotFoundError):
            entries.append(entry_of(name, os.stat(name, dir_fd=folder, follow_symlinks=False)))
    return Listing(tuple(entries), len(chosen) > limit, left_out)


def is_text(name: str) -> bool:
    """Return whether a name is text: names on disk are bytes, which need not be UTF-8."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)
