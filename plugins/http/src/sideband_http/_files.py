"""A new file inside one folder, that is there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from attrs import define, field

from ._errors import FileFailed, FileRefused

__all__ = ["NewFile", "normal_file_path", "writing"]

_DEEPEST = 16
_LONGEST_PART = 200
_PIECE = 1024 * 1024
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\\:*?\"<>|\ud800-\udfff]")
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def normal_file_path(path: str) -> str:
    """The path in the one form that is both checked and written.

    Raises:
        FileRefused: it is absolute, leads out of the folder, or has a part that is hidden or unsafe on some system.

    Example:
        >>> normal_file_path("reports//2026/may.csv")
        'reports/2026/may.csv'
    """
    if path.startswith("/"):
        raise FileRefused(path, "it is absolute")
    if path.endswith("/"):
        raise FileRefused(path, "it names a folder")
    parts = [part for part in path.split("/") if part]
    if not 0 < len(parts) <= _DEEPEST:
        raise FileRefused(path, f"it has {len(parts)} parts, not 1 to {_DEEPEST}")
    for part in parts:
        if part.startswith("."):
            raise FileRefused(path, f"`{part}` is hidden or leads elsewhere")
        if part.endswith((" ", ".")) or _FORBIDDEN.search(part) or len(part.encode("utf-8", "replace")) > _LONGEST_PART:
            raise FileRefused(path, "a part of it is too long, or has characters that not all systems take")
    return "/".join(parts)


@define
class NewFile:
    """A file that is being written, under a name of its own until it is complete."""

    path: str
    folder: int
    name: str
    temporary: str
    descriptor: int
    size: int = 0
    _digest: hashlib._Hash = field(factory=hashlib.sha256, init=False)
    _pending: bytearray = field(factory=bytearray, init=False)

    @property
    def sha256(self) -> str:
        """The digest of what was written."""
        return self._digest.hexdigest()

    async def write(self, data: bytes) -> None:
        """Add to the end.

        Raises:
            FileFailed: the disk is full, for instance.
        """
        self.size += len(data)
        self._pending += data
        if len(self._pending) >= _PIECE:
            await anyio.to_thread.run_sync(self._flush)

    async def commit(self, *, overwrite: bool) -> None:
        """Give it its name.

        Raises:
            FileRefused: there is one with this name by now, and it must not be replaced.
            FileFailed: the operating system refused.
        """
        await anyio.to_thread.run_sync(self._commit, overwrite)

    def _flush(self) -> None:
        self._digest.update(self._pending)
        view = memoryview(bytes(self._pending))
        self._pending.clear()
        try:
            while view:
                view = view[os.write(self.descriptor, view) :]
        except OSError as error:
            raise FileFailed(self.path, error.strerror or str(error)) from error

    def _commit(self, overwrite: bool) -> None:
        self._flush()
        try:
            os.fsync(self.descriptor)
            if overwrite:
                os.replace(self.temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
            else:
                os.link(
                    self.temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder, follow_symlinks=False
                )
                os.unlink(self.temporary, dir_fd=self.folder)
            os.fsync(self.folder)
        except FileExistsError:
            raise _taken(self.path) from None
        except IsADirectoryError:
            raise FileRefused(self.path, "there is a folder with this name") from None
        except OSError as error:
            raise FileFailed(self.path, error.strerror or str(error)) from error

    def discard(self) -> None:
        """Let go of it; what was not committed is gone."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.temporary, dir_fd=self.folder)
        os.close(self.descriptor)
        os.close(self.folder)


@asynccontextmanager
async def writing(root: Path, path: str, *, overwrite: bool) -> AsyncIterator[NewFile]:
    """A new file at a normal path under ``root``. Without a commit, nothing is left.

    Folders that are missing are made; one that is a symbolic link is refused, whoever made it.

    Raises:
        FileRefused: the path leads through a link or a file, or names something that must not be replaced.
        FileFailed: the operating system refused.
    """
    file = await anyio.to_thread.run_sync(_open, root, path, overwrite)
    try:
        yield file
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(file.discard)


def _open(root: Path, path: str, overwrite: bool) -> NewFile:
    *folders, name = path.split("/")
    folder = _enter(root, folders, path)
    temporary = f".{secrets.token_hex(8)}.part"
    try:
        _check_free(folder, name, path, overwrite=overwrite)
        descriptor = os.open(temporary, _FILE_FLAGS, mode=0o600, dir_fd=folder)
    except OSError as error:
        os.close(folder)
        raise FileFailed(path, error.strerror or str(error)) from error
    except FileRefused:
        os.close(folder)
        raise
    return NewFile(path, folder, name, temporary, descriptor)


def _enter(root: Path, folders: list[str], path: str) -> int:
    """Open the folder that a file goes into, one step at a time: no step can lead out."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        current = os.open(root, _FOLDER_FLAGS)
    except OSError as error:
        raise _not_entered(path, error) from error
    for name in folders:
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, mode=0o700, dir_fd=current)
            following = os.open(name, _FOLDER_FLAGS, dir_fd=current)
        except OSError as error:
            raise _not_entered(path, error) from error
        finally:
            os.close(current)
        current = following
    return current


def _not_entered(path: str, error: OSError) -> FileRefused | FileFailed:
    if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EEXIST}:
        return FileRefused(path, "a folder on the way is a file or a symbolic link")
    return FileFailed(path, error.strerror or str(error))


def _check_free(folder: int, name: str, path: str, *, overwrite: bool) -> None:
    try:
        found = os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        raise FileRefused(path, "what is there is no ordinary file")
    if not overwrite:
        raise _taken(path)


def _taken(path: str) -> FileRefused:
    return FileRefused(path, "there is a file with this name", hint="pass `overwrite` if it may be replaced")
