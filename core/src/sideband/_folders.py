"""Content-addressed folders: written once, all or nothing, named by what is in them, and checked when found again.

Snapshots of skills and generated SDKs are kept in such folders. A folder's name is the SHA-256 over the names,
executable bits and contents of its files, so equal content is stored once and a changed file is always noticed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from uuid import uuid4

from attrs import frozen

from ._errors import SidebandError

__all__ = ["FolderFailed", "StoredFile", "digest_of", "make_temporary", "publish", "put_in_place", "remove_folder"]

_TEMPORARY = ".new-"
_LEFTOVER_SECONDS = 3600


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


def digest_of(files: Iterable[StoredFile]) -> str:
    """The name of the folder that holds exactly these files: 64 hexadecimal digits."""
    total = hashlib.sha256(b"sideband folder 1\n")
    for file in sorted(files, key=lambda file: file.path):
        name = file.path.encode()
        # lengths first, so that no two lists of files run together into the same bytes
        total.update(b"%d %d %d\n" % (len(name), file.executable, len(file.content)))
        total.update(name)
        total.update(file.content)
    return total.hexdigest()


def publish(parent: Path, files: Iterable[StoredFile]) -> Path:
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
    digest = digest_of(content)
    target = parent / digest
    try:
        if not target.exists():
            _write(parent, target, content)
        found = _read(target)
    except OSError as error:
        raise FolderFailed(
            f"`{target}` can't be written: {error.strerror or error}", hint="check free space and permissions"
        ) from error
    if found is None or digest_of(found) != digest:
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


def make_temporary(parent: Path, *, leftover_seconds: float = _LEFTOVER_SECONDS) -> Path:
    """A new folder beside those that are complete, to be filled and put in place.

    Args:
        parent: the folder of both; made if it is not there.
        leftover_seconds: the age at which another one is what a host that was killed while filling it left behind,
            and is removed.
    """
    parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(parent, leftover_seconds)
    temporary = parent / f"{_TEMPORARY}{os.getpid()}-{uuid4().hex}"
    temporary.mkdir()
    return temporary


def put_in_place(temporary: Path, target: Path) -> None:
    """Make a filled folder the one of this name, by one rename, with the names in it on disk before that.

    If another host was faster, its folder stays, and this one is left to ``remove_folder``.
    """
    for folder in sorted({temporary, *(path for path in temporary.rglob("*") if path.is_dir())}):
        # workers may run as another user, whatever the umask of this one
        folder.chmod(0o755)
        _sync_folder(folder)
    try:
        temporary.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    _sync_folder(target.parent)


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as that is possible. None is fine."""
    shutil.rmtree(folder, ignore_errors=True)


def _write(parent: Path, target: Path, files: tuple[StoredFile, ...]) -> None:
    temporary = make_temporary(parent)
    try:
        for file in files:
            _write_file(temporary / file.path, file)
        put_in_place(temporary, target)
    finally:
        remove_folder(temporary)


def _write_file(path: Path, file: StoredFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as stream:
        stream.write(file.content)
        os.fchmod(stream.fileno(), 0o555 if file.executable else 0o444)
        stream.flush()
        os.fsync(stream.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_leftovers(parent: Path, seconds: float) -> None:
    for path in parent.glob(f"{_TEMPORARY}*"):
        try:
            abandoned = time.time() - path.stat().st_mtime > seconds
        except FileNotFoundError:
            continue
        if abandoned:
            remove_folder(path)


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
