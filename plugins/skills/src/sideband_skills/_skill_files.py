"""The files of a skill: the regular files of its folder, without links out of it, devices and oversized files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from ._problems import Problems, shown

_MAXIMUM_FILE = 16 << 20
_MAXIMUM_TOTAL = 64 << 20
_MAXIMUM_FILES = 5_000
_MAXIMUM_DEPTH = 16
_MAXIMUM_TEXT = 1 << 20
_IGNORED_FOLDERS = frozenset({"__pycache__"})
_IGNORED_SUFFIXES = (".pyc", ".pyo")


@frozen
class SkillFiles:
    """The files of a skill: sorted relative paths with ``/``. Empty and not ``complete`` if there are too many."""

    paths: tuple[str, ...]
    complete: bool


def list_files(folder: Path, problems: Problems) -> SkillFiles:
    """List all files in the folder except hidden files, ``__pycache__`` and compiled Python.

    A symbolic link is included only if it points to a regular file of the same folder. Other entries that cannot be
    part of a snapshot are skipped and reported. Beyond 5,000 files or 64 MiB, the listing fails.
    """
    root = Path(os.path.realpath(folder))
    paths: list[str] = []
    total = 0
    for entry, name in _walk(folder, problems):
        size = _usable_size(entry, name, root, problems)
        if size is None:
            continue
        total += size
        paths.append(name)
        if len(paths) > _MAXIMUM_FILES or total > _MAXIMUM_TOTAL:
            problems.fail(
                "files.many",
                f"the folder exceeds the limit of {_MAXIMUM_FILES:,} files or {_MAXIMUM_TOTAL >> 20} MiB",
                "remove files that the skill does not need",
            )
            return SkillFiles((), complete=False)
    return SkillFiles(tuple(sorted(paths)), complete=True)


def _walk(folder: Path, problems: Problems) -> Iterator[tuple[os.DirEntry[str], str]]:
    waiting = [(folder, "", 0)]
    while waiting:
        current, prefix, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
        except OSError as error:
            problems.warn("files.unreadable", f"cannot list `{prefix or '.'}`: {error.strerror}")
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name.endswith(_IGNORED_SUFFIXES):
                continue
            name = f"{prefix}{entry.name}"
            if not entry.is_dir(follow_symlinks=False):
                yield entry, name
            elif entry.name in _IGNORED_FOLDERS:
                continue
            elif depth + 1 >= _MAXIMUM_DEPTH:
                problems.warn("files.deep", f"skipped {shown(name)}: nested deeper than {_MAXIMUM_DEPTH} levels")
            else:
                waiting.append((Path(entry.path), f"{name}/", depth + 1))


def _usable_size(entry: os.DirEntry[str], name: str, root: Path, problems: Problems) -> int | None:
    """Return the size of a file, or ``None`` with a warning if it cannot be part of the skill."""
    if not name.isprintable():
        problems.warn("files.name", f"skipped {shown(name)}: the file name has unprintable characters")
        return None
    try:
        if entry.is_symlink() and not _leads_inside(entry.path, root):
            problems.warn(
                "files.link",
                f"skipped `{name}`: the link does not point to a file in the skill's folder",
                "replace it with the file",
            )
            return None
        status = entry.stat()
    except OSError as error:
        problems.warn("files.unreadable", f"skipped `{name}`: {error.strerror}")
        return None
    if not stat.S_ISREG(status.st_mode):
        problems.warn("files.special", f"skipped `{name}`: not a regular file")
        return None
    if status.st_size > _MAXIMUM_FILE:
        problems.warn("files.large", f"skipped `{name}`: it exceeds the limit of {_MAXIMUM_FILE >> 20} MiB")
        return None
    return status.st_size


def _leads_inside(path: str, root: Path) -> bool:
    target = Path(os.path.realpath(path))
    return target.is_relative_to(root) and target.is_file()


def read_text(folder: Path, name: str, problems: Problems) -> str | None:
    """Return the text of a listed file, or ``None`` with a warning.

    The encoding is UTF-8 with or without a byte-order mark, or UTF-16 with one. Invalid bytes are replaced, with a
    warning.
    """
    try:
        # O_NONBLOCK: if a pipe has replaced the file, opening it must not wait for a writer
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor has no path
            content = stream.read(_MAXIMUM_TEXT + 1) or b""
    except OSError as error:
        problems.warn("files.unreadable", f"cannot read `{name}`: {error.strerror}", file=name)
        return None
    if len(content) > _MAXIMUM_TEXT:
        problems.warn("files.text", f"`{name}` exceeds the limit of {_MAXIMUM_TEXT >> 10} KiB", file=name)
        return None
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        problems.warn("encoding", f"`{name}` is UTF-16", "save it as UTF-8", file=name)
        return content.decode("utf-16", errors="replace")
    if b"\0" in content:
        problems.warn("encoding", f"`{name}` is not a text file", "save it as UTF-8", file=name)
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.warn(
            "encoding",
            f"`{name}` is not valid UTF-8 (byte {error.start:,}); invalid bytes were replaced",
            "save it as UTF-8",
            file=name,
        )
        return content.decode("utf-8-sig", errors="replace")
