"""Snapshots of skills: what a worker runs is a copy, taken when the skill was loaded and named by its content."""

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
    """A skill could not be copied as it is.

    ``snapshot.unreadable``, ``snapshot.escape``, ``snapshot.changed``, ``snapshot.too_large``, or, for the stored
    copy, ``snapshot.failed`` and ``snapshot.tampered``.
    """

    code = "snapshot.failed"
    exit_code = ExitCode.CONFIGURATION


@frozen
class Snapshot:
    """A stored copy of a skill.

    Args:
        digest: SHA-256 over the names, executable bits and contents of its files.
        path: the folder, ``HOME/skills/<digest>``; its files are read-only.
    """

    digest: str
    path: Path


def snapshot(spec: SkillSpec, home: Path) -> Snapshot:
    """Copy exactly ``spec.files`` to ``home/skills/<digest>``; the source is only read.

    It blocks on the disk, so async code runs it in a thread. The copy appears whole or not at all, also when two
    hosts make it at once; a copy that is there already is compared with its digest, byte by byte.

    Raises:
        SnapshotFailed: a file is missing, is no regular file, lies outside the skill's folder, or was changed while
            it was copied; or the stored copy is not what its name says.

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
    return SnapshotFailed(f"skill `{spec.name}` was not copied: {problem}", hint=hint, code=f"snapshot.{kind}")


def _read_all(spec: SkillSpec) -> list[StoredFile]:
    root = os.open(spec.source, os.O_RDONLY | os.O_DIRECTORY)
    try:
        read: list[tuple[StoredFile, tuple[int, ...]]] = []
        room = _MAXIMUM_BYTES
        for name in spec.files:
            read.append(_read_file(spec, root, name, room=room))
            room -= len(read[-1][0].content)
        # an editor that saves two files while they are read must not leave a mixture of old and new
        for file, identity in read:
            if _identity_now(spec, root, file.path) != identity:
                raise _changed(spec, file.path)
        return [file for file, _ in read]
    finally:
        os.close(root)


def _changed(spec: SkillSpec, name: str) -> SnapshotFailed:
    return _failed(spec, "changed", f"`{name}` was changed while it was copied", "load the skill again")


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """What tells whether a file is still the one that was read."""
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
            raise _failed(spec, "unreadable", f"`{name}` is no regular file")
        if before.st_size > room:
            raise _failed(spec, "too_large", f"its files have more than {_MAXIMUM_BYTES >> 20} MiB")
        content = stream.read(before.st_size + 1)
        identity = _identity(os.fstat(stream.fileno()))
    if identity != _identity(before) or len(content) != before.st_size:
        raise _changed(spec, name)
    return StoredFile(name, content, bool(before.st_mode & stat.S_IXUSR)), identity


def _open_inside(spec: SkillSpec, root: int, name: str) -> int:
    """Open a file of the folder without ever following a link out of it.

    A link to another file of the same folder is copied as that file. No component is followed by the system itself,
    so replacing one by a link while this runs gains nothing.
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts:
        raise _failed(spec, "escape", f"`{name}` is no path inside the skill's folder")
    path = spec.source.joinpath(*parts)
    if path.is_symlink():
        base = spec.source.resolve()
        resolved = path.resolve()
        if not resolved.is_relative_to(base):
            raise _failed(
                spec, "escape", f"`{name}` is a link that leads out of the skill's folder", "put the file itself there"
            )
        parts = resolved.relative_to(base).parts
    return open_beneath(root, parts)
