"""Write new files atomically.

``sideband.state`` also writes files atomically, by path. Here, other processes may change the paths meanwhile and may
have created the replaced file. Therefore everything uses descriptors, without a name where the system supports that,
and under a lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable

from anyio import CapacityLimiter, from_thread, to_thread
from attrs import define, field

from ._errors import FileChanged, FileRefused, FileTaken, FileTooLarge
from ._locks import FolderLocks
from ._steps import DESCRIPTORS, PIECE, digest_of, opened, ordinary, settle, translating

_NAMED = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMELESS = getattr(os, "O_TMPFILE", 0) | os.O_WRONLY | os.O_CLOEXEC


@define
class NewFile:
    """A file that is being written, hidden from readers until it is committed.

    Where the system supports it, it has no name until then, so that nothing remains if the process is killed.

    Attributes:
        path: its path as shown in messages.
        size: the number of bytes written.
    """

    path: str
    _folder: int
    _name: str
    _descriptor: int
    _temporary: str | None
    _max_bytes: int | None
    _limiter: CapacityLimiter | None
    _locks: FolderLocks | None
    size: int = field(default=0, init=False)
    _digest: hashlib._Hash = field(factory=hashlib.sha256, init=False)
    _pending: bytearray = field(factory=bytearray, init=False)

    @property
    def sha256(self) -> str:
        """The digest in hexadecimal. Covers everything written once ``complete`` or ``commit`` was called."""
        return self._digest.hexdigest()

    async def write(self, data: bytes) -> None:
        """Append data.

        Raises:
            FileTooLarge: if the file exceeds its size limit.
            FileFailed: if a system call fails: the disk is full, for instance.
        """
        self.size += len(data)
        if self._max_bytes is not None and self.size > self._max_bytes:
            raise FileTooLarge(self.path, self.size, self._max_bytes)
        self._pending += data
        if len(self._pending) >= PIECE:
            await self._in_thread(self._flush)

    async def complete(self) -> str:
        """Flush all written data to disk. The file still has no name.

        Returns:
            Its SHA-256 in hexadecimal.

        Raises:
            FileFailed: if a system call fails.
        """
        await self._in_thread(self._complete)
        return self.sha256

    async def commit(
        self, *, overwrite: bool = False, expected: str | None = None, permissions: int | None = None
    ) -> None:
        """Link the file at its path, or replace the file there.

        Args:
            overwrite: whether a regular file at the path may be replaced.
            expected: the SHA-256 that the replaced file must have; implies ``overwrite``.
            permissions: the lower nine bits of its mode. By default those of the replaced file, or read and write for
                the owner.

        Raises:
            FileTaken: if the path exists by now and must not be replaced.
            FileChanged: if the digest of the existing file differs from ``expected``.
            FileRefused: if the path is a folder or a link.
            FileFailed: if a system call fails.
        """

        def work() -> None:
            self._complete()
            locked = self._locks.held(self._folder) if self._locks else contextlib.nullcontext()
            with translating(self.path), locked:
                self._place(overwrite or expected is not None, expected, permissions)

        await self._in_thread(work)

    def discard(self) -> None:
        """Close the file and drop it unless it was committed. Blocks."""
        with contextlib.suppress(FileNotFoundError):
            if self._temporary is not None:
                os.unlink(self._temporary, dir_fd=self._folder)
        os.close(self._descriptor)

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await to_thread.run_sync(work, limiter=self._limiter)

    def _flush(self) -> None:
        piece = bytes(self._pending)
        self._pending.clear()
        self._digest.update(piece)
        view = memoryview(piece)
        with translating(self.path):
            while view:
                from_thread.check_cancelled()
                view = view[os.write(self._descriptor, view) :]

    def _complete(self) -> None:
        self._flush()
        with translating(self.path):
            os.fsync(self._descriptor)

    def _place(self, overwrite: bool, expected: str | None, permissions: int | None) -> None:
        try:
            found = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            found = None
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise FileRefused(self.path, "it is not a regular file")
        check_expected(self._folder, self._name, self.path, expected)
        _dress(self._descriptor, found, permissions)
        from_thread.check_cancelled()
        if overwrite:
            temporary = self._temporary or self._named()
            os.replace(temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        else:
            self._link(self._name)
            if self._temporary is not None:
                os.unlink(self._temporary, dir_fd=self._folder)
        self._temporary = None
        settle(self._folder, self.path)

    def _named(self) -> str:
        """Link the unnamed file under a temporary name: only a named file can replace another."""
        name = _temporary_name()
        self._link(name)
        self._temporary = name
        return name

    def _link(self, name: str) -> None:
        """Link the file under a name that does not exist yet."""
        if self._temporary is not None:
            os.link(self._temporary, name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
        else:
            os.link(DESCRIPTORS / str(self._descriptor), name, dst_dir_fd=self._folder, follow_symlinks=True)


def check_expected(folder: int, name: str, path: str, expected: str | None) -> None:
    """Check that a regular file has this digest. With ``None``, any content is accepted.

    Raises:
        FileChanged: if the digest differs or the file no longer exists.
        FileRefused: if it is not a regular file.
    """
    if expected is None:
        return
    try:
        ordinary(folder, name, path)
    except FileNotFoundError:
        raise FileChanged(path, gone=True) from None
    with opened(folder, name, path) as (descriptor, _):
        if digest_of(descriptor) != expected:
            raise FileChanged(path)


def open_new(
    folder: int,
    name: str,
    path: str,
    *,
    overwrite: bool,
    max_bytes: int | None,
    limiter: CapacityLimiter | None,
    locks: FolderLocks | None,
) -> NewFile:
    """Open a new file in this folder. The file owns its descriptor; the caller keeps that of the folder.

    Raises:
        FileTaken: if the path exists and must not be replaced.
        FileRefused: if the path exists and is not a regular file.
        FileFailed: if a system call fails.
    """
    with translating(path):
        with contextlib.suppress(FileNotFoundError):
            ordinary(folder, name, path)
            if not overwrite:
                raise FileTaken(path)
        descriptor, temporary = _open_nameless(folder) or _open_named(folder)
    return NewFile(path, folder, name, descriptor, temporary, max_bytes, limiter, locks)


def _open_nameless(folder: int) -> tuple[int, None] | None:
    """Open a file without a name, or return ``None`` if the system or the file system does not support it."""
    if not hasattr(os, "O_TMPFILE") or not DESCRIPTORS.exists():
        return None
    try:
        return os.open(".", _NAMELESS, mode=0o600, dir_fd=folder), None
    except (IsADirectoryError, OSError):
        # if the folder itself is the problem, creating a named file reports it more precisely
        return None


def _open_named(folder: int) -> tuple[int, str]:
    name = _temporary_name()
    return os.open(name, _NAMED, mode=0o600, dir_fd=folder), name


def _temporary_name() -> str:
    return f".{secrets.token_hex(8)}.part"


def _dress(descriptor: int, replaced: os.stat_result | None, permissions: int | None) -> None:
    """Give the new file the owner and mode of the replaced one, without granting access to any other user."""
    mode = permissions
    if replaced is not None:
        mine = os.fstat(descriptor)
        mode = replaced.st_mode if mode is None else mode
        if (mine.st_uid, mine.st_gid) != (replaced.st_uid, replaced.st_gid):
            try:
                os.fchown(descriptor, replaced.st_uid, replaced.st_gid)
            except PermissionError:
                # the group permissions would now apply to a different group
                mode &= ~0o070
    if mode is not None:
        os.fchmod(descriptor, mode & 0o777)


def rename(
    folder: int, name: str, target_folder: int, target: str, shown: str, *, overwrite: bool, source: int | None
) -> None:
    """Rename a file. With ``source``, its descriptor, what has replaced it at its name meanwhile is not moved.

    Raises:
        FileChanged: if the name belongs to another file than ``source`` by now.
        FileTaken: if the target exists and must not be replaced.
        FileRefused: if the target exists and is not a regular file.
    """
    try:
        found = os.stat(target, dir_fd=target_folder, follow_symlinks=False)
    except FileNotFoundError:
        found = None
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise FileRefused(shown, "it is not a regular file")
    if found is not None and not overwrite:
        raise FileTaken(shown)
    from_thread.check_cancelled()
    if overwrite:
        if source is not None and not os.path.samestat(
            os.fstat(source), os.stat(name, dir_fd=folder, follow_symlinks=False)
        ):
            raise FileChanged(shown)
        os.replace(name, target, src_dir_fd=folder, dst_dir_fd=target_folder)
        return
    # unlike a rename, a link never replaces a file that was created meanwhile
    if source is not None and DESCRIPTORS.exists():
        os.link(DESCRIPTORS / str(source), target, dst_dir_fd=target_folder, follow_symlinks=True)
    else:
        os.link(name, target, src_dir_fd=folder, dst_dir_fd=target_folder, follow_symlinks=False)
    os.unlink(name, dir_fd=folder)
