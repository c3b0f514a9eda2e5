"""Content-addressed folders: written atomically, named by their content, and verified on each use.

Snapshots of skills and generated SDKs are stored in such folders. A folder's name is the SHA-256 of the names,
executable bits and contents of its files, so equal content is stored once and any change is detected.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from attrs import frozen

from ..errors import SidebandError
from ._temporary_folders import TemporaryFolder, remove_temporary_folders


class FolderFailed(SidebandError, OSError):
    """A content-addressed folder cannot be written, or does not match its name (``folder.tampered``)."""

    code = "folder.failed"


@frozen
class StoredFile:
    """One file of a content-addressed folder.

    Args:
        path: the path relative to the folder, with ``/``.
        content: the whole content.
        executable: whether the executable bit is set.
    """

    path: str
    content: bytes
    executable: bool = False


def folder_digest(files: Iterable[StoredFile]) -> str:
    """Return the name of the folder that holds exactly these files: 64 hexadecimal digits."""
    total = hashlib.sha256(b"sideband folder 1\n")
    for file in sorted(files, key=lambda file: file.path):
        name = file.path.encode()
        # The lengths make the encoding injective: different lists of files never hash the same bytes.
        total.update(b"%d %d %d\n" % (len(name), file.executable, len(file.content)))
        total.update(name)
        total.update(file.content)
    return total.hexdigest()


def publish_folder(parent: Path, files: Iterable[StoredFile]) -> Path:
    """Create the folder ``parent/<digest>`` with exactly these files, if necessary, and return it.

    The folder is synced to disk and then renamed into place. If it already exists, from an earlier run or another host,
    its content is verified against its name.

    Raises:
        FolderFailed: if the folder cannot be written (``folder.failed``), or if an existing folder was modified
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
            f"cannot write `{target}`: {error.strerror or error}", hint="check free space and permissions"
        ) from error
    if found is None or folder_digest(found) != digest:
        raise FolderFailed(
            f"`{target}` was modified: a file was changed, added or removed",
            hint="find out what changed it, then delete the folder; it is created again when it is needed",
            code="folder.tampered",
        )
    return target


def _check_path(path: str) -> None:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or str(PurePosixPath(path)) != path:
        raise FolderFailed(f"invalid path in a folder: `{path}`", hint="use a normalized relative path without `..`")


def _write(parent: Path, target: Path, files: tuple[StoredFile, ...]) -> None:
    remove_temporary_folders(parent)
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
        # What copies a file of it, such as a template, copies its permissions too, and must be able to change the copy.
        os.fchmod(stream.fileno(), 0o755 if file.executable else 0o644)
        stream.flush()
        os.fsync(stream.fileno())


def _read(folder: Path) -> list[StoredFile] | None:
    """Return the files in a folder, or ``None`` if it contains anything but regular files and folders."""
    files = []
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            name = path.relative_to(folder).as_posix()
            files.append(StoredFile(name, path.read_bytes(), bool(mode & stat.S_IXUSR)))
        elif not stat.S_ISDIR(mode):
            return None
    return files
