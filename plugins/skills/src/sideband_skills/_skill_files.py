"""What belongs to a skill: the regular files of its folder. Links, devices and giants are refused with a reason."""

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
    """The files of a skill: relative paths with ``/``, sorted. ``None`` of them if there are too many."""

    paths: tuple[str, ...]
    complete: bool


def list_files(folder: Path, problems: Problems) -> SkillFiles:
    """Everything in the folder except hidden files, ``__pycache__`` and compiled Python.

    A link is taken only if it leads to a regular file of the same folder. Anything else that can't be a part of a
    snapshot is left out, and ``problems`` says so. Beyond 5,000 files or 64 MiB the listing is not complete.
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
                f"it has more than {_MAXIMUM_FILES:,} files or {_MAXIMUM_TOTAL >> 20} MiB",
                "keep what the skill does not need out of its folder",
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
            problems.warn("files.unreadable", f"`{prefix or '.'}` can't be listed: {error.strerror}")
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
                problems.warn("files.deep", f"{shown(name)} is nested deeper than {_MAXIMUM_DEPTH}, and is left out")
            else:
                waiting.append((Path(entry.path), f"{name}/", depth + 1))


def _usable_size(entry: os.DirEntry[str], name: str, root: Path, problems: Problems) -> int | None:
    """The size of a file that can be a part of the skill; otherwise the reason is noted."""
    if not name.isprintable():
        problems.warn("files.name", f"the file name {shown(name)} can't be written as text; it is left out")
        return None
    try:
        if entry.is_symlink() and not _leads_inside(entry.path, root):
            problems.warn(
                "files.link",
                f"`{name}` is a link that leads out of the folder, to nothing or to a folder; it is left out",
                "put the file itself there",
            )
            return None
        status = entry.stat()
    except OSError as error:
        problems.warn("files.unreadable", f"`{name}` can't be read: {error.strerror}; it is left out")
        return None
    if not stat.S_ISREG(status.st_mode):
        problems.warn("files.special", f"`{name}` is no regular file (a device, pipe or socket); it is left out")
        return None
    if status.st_size > _MAXIMUM_FILE:
        problems.warn("files.large", f"`{name}` has more than {_MAXIMUM_FILE >> 20} MiB; it is left out")
        return None
    return status.st_size


def _leads_inside(path: str, root: Path) -> bool:
    target = Path(os.path.realpath(path))
    return target.is_relative_to(root) and target.is_file()


def read_text(folder: Path, name: str, problems: Problems) -> str | None:
    """The text of one listed file, or ``None`` with the reason noted.

    UTF-8 with or without a byte-order mark, or UTF-16 with one. Other bytes are replaced, and that is said.
    """
    try:
        # without O_NONBLOCK, opening a pipe that took the file's place would wait for its writer
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor has no path
            content = stream.read(_MAXIMUM_TEXT + 1) or b""
    except OSError as error:
        problems.warn("files.unreadable", f"`{name}` can't be read: {error.strerror}", file=name)
        return None
    if len(content) > _MAXIMUM_TEXT:
        problems.warn("files.text", f"`{name}` has more than {_MAXIMUM_TEXT >> 10} KiB and was not read", file=name)
        return None
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        problems.warn("encoding", f"`{name}` is UTF-16", "save it as UTF-8", file=name)
        return content.decode("utf-16", errors="replace")
    if b"\0" in content:
        problems.warn("encoding", f"`{name}` is no text", "save it as UTF-8", file=name)
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.warn(
            "encoding", f"`{name}` is no UTF-8 (byte {error.start:,}); what is wrong was replaced", "save it as UTF-8",
            file=name,
        )  # fmt: skip
        return content.decode("utf-8-sig", errors="replace")
