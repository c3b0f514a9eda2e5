"""Snapshots of skills. A worker runs a copy of the skill, made when it was loaded and named by its content."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from attrs import frozen

from ..errors import SidebandError
from ..exit_codes import ExitCode
from ..loading import SkillSpec
from ..state import FolderFailed, StoredFile, folder_digest, open_beneath, publish_folder

__all__ = ["Snapshot", "SnapshotFailed", "snapshot"]

_MAXIMUM_BYTES = 256 << 20


class SnapshotFailed(SidebandError, OSError):
    """A skill could not be copied.

    The code is ``snapshot.unreadable``, ``snapshot.escape``, ``snapshot.changed`` or ``snapshot.too_large`` for the
    skill, and ``snapshot.failed`` or ``snapshot.tampered`` for the stored copy.
    """

    code = "snapshot.failed"
    exit_code = ExitCode.CONFIGURATION


@frozen
class Snapshot:
    """A stored copy of a skill.

    Args:
        digest: the SHA-256 of the names, executable bits and contents of its files.
        path: the folder, ``SIDEBAND_HOME/skills/<digest>``. Only the user can change its files.
    """

    digest: str
    path: Path


def snapshot(spec: SkillSpec, home: Path) -> Snapshot:
    """Copy exactly ``spec.files`` to ``home/skills/<digest>``.

    The function blocks on the disk, so async code must run it in a thread. The copy is made atomically, also if several
    hosts make it concurrently. The content of an existing copy is verified against its digest.

    Raises:
        SnapshotFailed: if a file is missing, is not a regular file, is outside the skill's folder, or changed during
            the copy, or if the stored copy was modified.

    Example:
        >>> taken = snapshot(spec, Path("~/.sideband").expanduser())
        >>> (taken.path / "SKILL.md").exists()
        True
    """
    try:
        files = _read_all(spec)
    except OSError as error:
        if isinstance(error, SnapshotFailed):
            raise
        raise _failed(spec, "unreadable", f"`{error.filename or spec.source}`: {error.strerror or error}") from error
    try:
        path = publish_folder(home / "skills", files)
    except FolderFailed as error:
        code = error.code.replace("folder.", "snapshot.")
        raise SnapshotFailed(f"skill `{spec.name}`: {error.message}", hint=error.hint, code=code) from error
    return Snapshot(folder_digest(files), path)


def _failed(spec: SkillSpec, kind: str, problem: str, hint: str = "") -> SnapshotFailed:
    return SnapshotFailed(f"cannot copy skill `{spec.name}`: {problem}", hint=hint, code=f"snapshot.{kind}")


def _read_all(spec: SkillSpec) -> list[StoredFile]:
    root = os.open(spec.source, os.O_RDONLY | os.O_DIRECTORY)
    try:
        read: list[tuple[StoredFile, tuple[int, ...]]] = []
        room = _MAXIMUM_BYTES
        for name in spec.files:
            read.append(_read_file(spec, root, name, room=room))
            room -= len(read[-1][0].content)
        # Check again that no file has changed: a snapshot must not mix old and new versions.
        for file, identity in read:
            if _identity_now(spec, root, file.path) != identity:
                raise _changed(spec, file.path)
        return [file for file, _ in read]
    finally:
        os.close(root)


def _changed(spec: SkillSpec, name: str) -> SnapshotFailed:
    return _failed(spec, "changed", f"`{name}` changed during the copy", "load the skill again")


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """Return the attributes that change when a file is modified or replaced."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _identity_now(spec: SkillSpec, root: int, name: str) -> tuple[int, ...]:
    try:
        with open(_open_inside(spec, root, name), "rb") as stream:
            return _identity(os.fstat(stream.fileno()))
    except OSError as error:
        raise _changed(spec, name) from error


def _read_file(spec: SkillSpec, root: int, name: str, *, room: int) -> tuple[StoredFile, tuple[int, ...]]:
    with open(_open_inside(spec, root, name), "rb") as stream:
        before = os.fstat(stream.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise _failed(spec, "unreadable", f"`{name}` is not a regular file")
        if before.st_size > room:
            raise _failed(spec, "too_large", f"its files exceed the limit of {_MAXIMUM_BYTES >> 20} MiB")
        content = stream.read(before.st_size + 1)
        identity = _identity(os.fstat(stream.fileno()))
    if identity != _identity(before) or len(content) != before.st_size:
        raise _changed(spec, name)
    return StoredFile(name, content, bool(before.st_mode & stat.S_IXUSR)), identity


def _open_inside(spec: SkillSpec, root: int, name: str) -> int:
    """Open a file in the skill's folder without following a link out of it.

    A link to another file in the same folder is resolved here. The system call follows no link, so a component that is
    concurrently replaced with a link cannot redirect the path.
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise _failed(spec, "escape", f"`{name}` is not a path inside the skill's folder")
    path = spec.source.joinpath(*parts)
    if path.is_symlink():
        base = spec.source.resolve()
        resolved = path.resolve()
        if not resolved.is_relative_to(base):
            raise _failed(
                spec, "escape", f"`{name}` is a link to a path outside the skill's folder", "copy the file itself there"
            )
        parts = resolved.relative_to(base).parts
    return open_beneath(root, parts)
