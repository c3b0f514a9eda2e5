"""The files of a skill: the regular files of its folder, without links out of it, devices and oversized files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from io import FileIO
from pathlib import Path

from attrs import field, frozen

from ._meter import Meter
from ._problems import Problems, shown

_MAXIMUM_FILE = 16 << 20
_MAXIMUM_DEPTH = 16
_MAXIMUM_LINKS = 100
_MAXIMUM_TEXT = 1 << 20
_CHUNK = 1 << 20
# A file with more NUL bytes is not text, or is UTF-16 without a byte-order mark.
_TEXT_PER_NUL = 16
# `sideband sdk stubs` writes the last one, for editors.
_IGNORED_FOLDERS = frozenset({"__pycache__", "sideband_sdk"})
_IGNORED_SUFFIXES = (".pyc", ".pyo")

Identity = tuple[int, int, int, int, int]
"""What a file was when it was listed: device, inode, size, and the times of the last change of content and status."""


@frozen
class SkillFiles:
    """The files of a skill. Empty and not ``complete`` if there are too many.

    Args:
        paths: the relative paths with ``/``, sorted.
        complete: whether these are all files.
        identities: the identity of each file.
    """

    paths: tuple[str, ...]
    complete: bool
    identities: Mapping[str, Identity] = field(factory=dict, repr=False)


def list_files(entries: Iterable[os.DirEntry[str]], problems: Problems) -> SkillFiles:
    """List all files in the folder except hidden files, compiled Python, and generated stubs (``sideband_sdk``).

    A symbolic link is included only if it points to another file of this list. Other entries that cannot be part of a
    snapshot are skipped and reported. Beyond the limits for files and bytes, the listing fails.

    Args:
        entries: the entries of the folder, sorted by name.
        problems: receives the problems.

    Raises:
        LimitReached: if the folder has too many entries of other kinds.
    """
    limits = problems.meter.limits
    found: dict[str, Identity] = {}
    links: list[tuple[os.DirEntry[str], str]] = []
    total = 0
    for entry, name in _walk(entries, problems):
        if not name.isprintable():
            problems.warn("files.name", f"skipped {shown(name)}: the file name has unprintable characters")
        elif entry.is_symlink():
            links.append((entry, name))
        elif (status := _usable_status(entry, name, problems)) is not None:
            found[name] = identity_of(status)
            total += status.st_size
            if len(found) > limits.files or total > limits.size:
                return _too_many(problems)
    if links:
        linked = dict(_inside(links, frozenset(identity[:2] for identity in found.values()), problems))
        # the copy of a linked file counts, too
        total += sum(status.st_size for status in linked.values())
        found |= {name: identity_of(status) for name, status in linked.items()}
        if len(found) > limits.files or total > limits.size:
            return _too_many(problems)
    return SkillFiles(tuple(sorted(found)), True, found)


def _too_many(problems: Problems) -> SkillFiles:
    limits = problems.meter.limits
    problems.fail(
        "files.many",
        f"the folder exceeds the limit of {limits.files:,} files or {limits.size >> 20} MiB",
        "remove files that the skill does not need",
    )
    return SkillFiles((), complete=False)


def _walk(entries: Iterable[os.DirEntry[str]], problems: Problems) -> Iterator[tuple[os.DirEntry[str], str]]:
    waiting: list[tuple[str, str, int]] = []
    prefix, depth = "", 0
    while True:
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
                waiting.append((entry.path, f"{name}/", depth + 1))
        if not waiting:
            return
        current, prefix, depth = waiting.pop()
        try:
            entries = problems.meter.entries(current)
        except OSError as error:
            problems.warn("files.unreadable", f"cannot list `{prefix}`: {error.strerror}")
            entries = ()


def identity_of(status: os.stat_result) -> Identity:
    """Return the identity of the file with this status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _usable_status(entry: os.DirEntry[str], name: str, problems: Problems) -> os.stat_result | None:
    """Return the status of a file, or ``None`` with a warning if it cannot be part of the skill."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        problems.warn("files.unreadable", f"skipped `{name}`: {error.strerror}")
        return None
    if not stat.S_ISREG(status.st_mode):
        problems.warn("files.special", f"skipped `{name}`: not a regular file")
        return None
    if status.st_size > _MAXIMUM_FILE:
        problems.warn("files.large", f"skipped `{name}`: it exceeds the limit of {_MAXIMUM_FILE >> 20} MiB")
        return None
    return status


def _inside(
    links: list[tuple[os.DirEntry[str], str]], files: frozenset[tuple[int, int]], problems: Problems
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the links that lead to one of these files.

    The kernel resolves a link, and its result is compared with what was listed: walking paths here would take long for
    targets with thousands of components, and could be misled by folders that are replaced meanwhile.
    """
    for number, (entry, name) in enumerate(links):
        status = None
        if number < _MAXIMUM_LINKS:
            try:
                status = entry.stat()
            except OSError:
                status = None
        if status is not None and (status.st_dev, status.st_ino) in files:
            yield name, status
        else:
            problems.warn(
                "files.link",
                f"skipped `{name}`: the link does not point to a file in the skill's folder"
                if number < _MAXIMUM_LINKS
                else f"skipped `{name}`: the folder has more than {_MAXIMUM_LINKS} links",
                "replace it with the file",
            )


def read_text(folder: Path, name: str, identity: Identity, problems: Problems) -> str | None:
    """Return the text of a listed file, or ``None`` with a warning.

    The encoding is UTF-8 with or without a byte-order mark, or UTF-16 with one. Invalid bytes are replaced, with a
    warning.

    Args:
        folder: the skill's folder.
        name: the path of the file in it.
        identity: the file that was listed. Another one is not read, even if it has taken the place of this one.
        problems: receives the problems.
    """
    try:
        with _open(folder, name, identity) as stream:
            content = stream.read(_MAXIMUM_TEXT + 1) or b""
    except _Replaced:
        problems.warn("files.changed", f"`{name}` was replaced while the skill was read", file=name)
        return None
    except OSError as error:
        problems.warn("files.unreadable", f"cannot read `{name}`: {error.strerror}", file=name)
        return None
    return _decoded(content, name, problems)


class _Replaced(OSError):
    """Another file has taken the place of a listed one."""


@contextmanager
def _open(folder: Path, name: str, identity: Identity) -> Iterator[FileIO]:
    """Open a listed file.

    Raises:
        OSError: if it cannot be read.
        _Replaced: if it is another file.
    """
    # O_NONBLOCK: if a pipe has replaced the file, opening it must not wait for a writer
    descriptor = os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    with FileIO(descriptor) as stream:
        status = os.fstat(descriptor)
        # a pipe that has replaced the file may have its inode
        if (status.st_dev, status.st_ino) != identity[:2] or not stat.S_ISREG(status.st_mode):
            raise _Replaced
        yield stream


def content_digest(folder: Path, files: SkillFiles, meter: Meter) -> bytes | None:
    """Return the SHA-256 of the names, executable bits and contents of a skill's files; ``None`` if one is unreadable.

    Raises:
        LimitReached: if this takes too long.
    """
    whole = sha256()
    for name in files.paths:
        one = sha256()
        try:
            with _open(folder, name, files.identities[name]) as stream:
                executable = os.fstat(stream.fileno()).st_mode & stat.S_IXUSR
                while chunk := stream.read(_CHUNK):
                    one.update(chunk)
                    meter.check()
        except OSError:
            return None
        whole.update(f"{name}\0{executable:o}\0{one.hexdigest()}\n".encode())
    return whole.digest()


def _decoded(content: bytes, name: str, problems: Problems) -> str | None:
    if len(content) > _MAXIMUM_TEXT:
        problems.warn("files.text", f"`{name}` exceeds the limit of {_MAXIMUM_TEXT >> 10} KiB", file=name)
        return None
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        problems.warn("encoding", f"`{name}` is UTF-16", "save it as UTF-8", file=name)
        return content.decode("utf-16", errors="replace")
    nul = content.count(b"\0")
    # Python refuses a source file with a NUL byte, so its tools could not be called.
    if nul and (name.endswith(".py") or nul * _TEXT_PER_NUL > len(content)):
        problems.warn("encoding", f"`{name}` is not a text file", "save it as UTF-8", file=name)
        return None
    if nul:
        many = f"{nul:,} NUL bytes, which were" if nul > 1 else "a NUL byte, which was"
        problems.warn("encoding", f"`{name}` contains {many} replaced", "save it as text without them", file=name)
        content = content.replace(b"\0", "\ufffd".encode())
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
