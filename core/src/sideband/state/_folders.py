"""Content-addressed folders: written once, all or nothing, named by what is in them, and checked when found again.

Snapshots of skills and generated SDKs are kept in such folders. A folder's name is the SHA-256 over the names,
executable bits and contents of its files, so equal content is stored once and a changed file is always noticed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from attrs import frozen

from ..errors import SidebandError
from ._temporary_folders import TemporaryFolder


class FolderFailed(SidebandError, OSError):
    """A content-addressed folder can't be written, or is not what its name says (``folder.tampered``)."""

    code = "folder.failed"


@frozen
class StoredFile:
    """One file of such a folder.

    Args:
        path: relative, with ``/``.
        content: all of it.
        executable: whether its owner may run it.
    """

    path: str
    content: bytes
    executable: bool = False


def folder_digest(files: Iterable[StoredFile]) -> str:
    """The name of the folder that holds exactly these files: 64 hexadecimal digits."""
    total = hashlib.sha256(b"sideband folder 1\n")
    for file in sorted(files, key=lambda file: file.path):
        name = file.path.encode()
        # lengths first, so that no two lists of files run together into the same bytes
        total.update(b"%d %d %d\n" % (len(name), file.executable, len(file.content)))
        total.update(name)
        total.update(file.content)
    return total.hexdigest()


def publish_folder(parent: Path, files: Iterable[StoredFile]) -> Path:
    """Make sure that ``parent/<digest>`` holds exactly these files, read-only, and return it.

    The folder appears whole, by one rename, with everything on disk before it. If it is there already, from an
    earlier run or another host that was faster, every byte of it is compared with its name.

    Raises:
        FolderFailed: it can't be written (``folder.failed``), or what is there under this name has been changed
            (``folder.tampered``).
    """
    content = tuple(files)
    for file in content:
        _check_path(file.path)
    digest = folder_digest(content)
    target = parent / digest
    try:
        if not target.exists():
            _write(parent, target, content)
        found = _read(target)
    except OSError as error:
        raise FolderFailed(
            f"`{target}` can't be written: {error.strerror or error}", hint="check free space and permissions"
        ) from error
    if found is None or folder_digest(found) != digest:
        raise FolderFailed(
            f"`{target}` is not what was stored there: a file was changed, added or removed",
            hint="find out who changed it, then delete the folder; it is written again when it is needed",
            code="folder.tampered",
        )
    return target


def _check_path(path: str) -> None:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or str(PurePosixPath(path)) != path:
        raise FolderFailed(f"`{path}` is no path inside a folder", hint="use a relative path without `..`")


def _write(parent: Path, target: Path, files: tuple[StoredFile, ...]) -> None:
    temporary = TemporaryFolder.make(parent)
    try:
        for file in files:
            _write_file(temporary.path / file.path, file)
        temporary.put_in_place(target)
    finally:
        temporary.remove()


def _write_file(path: Path, file: StoredFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as stream:
        stream.write(file.content)
        os.fchmod(stream.fileno(), 0o555 if file.executable else 0o444)
        stream.flush()
        os.fsync(stream.fileno())


def _read(folder: Path) -> list[StoredFile] | None:
    """The files that are there now, or ``None`` if there is anything else than files and folders."""
    files = []
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            name = path.relative_to(folder).as_posix()
            files.append(StoredFile(name, path.read_bytes(), bool(mode & stat.S_IXUSR)))
        elif not stat.S_ISDIR(mode):
            return None
    return files
