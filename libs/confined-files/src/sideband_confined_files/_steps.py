"""From folder to folder by descriptors. No step follows a link, so nothing that is swapped meanwhile leads out.

Everything here blocks, and runs in a worker thread.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from anyio import from_thread
from sideband.state import open_beneath

from ._errors import FileError, FileFailed, FileMissing, FileRefused, FileTaken

PIECE = 1024 * 1024
# without O_NONBLOCK, opening a pipe waits for its other end
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# What the kernel shows of itself in the form of files: other processes' memory and environments among it. The numbers
# are those of statfs(2): proc, sysfs, debugfs, tracefs, securityfs, configfs, cgroup, cgroup2, bpf, pstore, efivarfs,
# binfmt_misc, selinux, smackfs, nsfs, fusectl.
_KERNEL = frozenset(
    {0x9FA0, 0x62656572, 0x64626720, 0x74726163, 0x73636673, 0x62656570, 0x27E0EB, 0x63677270, 0xCAFE4A11, 0x6165676C}
    | {0xDE5E81E4, 0x42494E4D, 0xF97CFF8C, 0x43415D53, 0x6E736673, 0x65735543}
)
_REFUSED = {
    errno.ELOOP: "a folder on the way is a file or a symbolic link",
    errno.ENOTDIR: "a folder on the way is a file or a symbolic link",
    errno.EISDIR: "there is a folder with this name",
    errno.ENOTEMPTY: "the folder is not empty",
    errno.ENAMETOOLONG: "a part of it is too long for this file system",
    errno.EILSEQ: "this file system does not take its characters",
    errno.EXDEV: "it is on another disk; copy it, then delete it",
    errno.ENXIO: "what is there is no ordinary file",
}


@contextmanager
def translating(path: str) -> Iterator[None]:
    """Turn what the system says about ``path`` into the errors of this package."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise _translated(path, error) from error


def _translated(path: str, error: OSError) -> FileError:
    number = error.errno or 0
    if number == errno.ENOENT:
        return FileMissing(path)
    if number == errno.EEXIST:
        return FileTaken(path)
    if number in _REFUSED:
        return FileRefused(path, _REFUSED[number])
    return FileFailed(path, error.strerror or type(error).__name__)


@contextmanager
def entered(
    root: Path, parts: Iterable[str], path: str, *, create: bool = False, excluded: Iterable[Path] = ()
) -> Iterator[int]:
    """A descriptor of the folder that is so many steps below ``root``, good for listing, locking and syncing.

    Args:
        root: where to begin; trusted, except that it must not be a link itself.
        parts: the names of the folders on the way.
        path: how messages call it.
        create: make what is missing, for the owner only.
        excluded: folders that are never entered, whatever their path.

    Raises:
        FileMissing: a folder is not there.
        FileRefused: a folder on the way is a file, a link, excluded, or the kernel's.
        FileFailed: the system refuses.
    """
    with translating(path):
        forbidden = set(_identities(excluded))
        if create:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        # a descriptor that only stands for a place, as those on the way do, can't be listed, locked or synced
        current = open_beneath(
            root,
            (*parts, "."),
            os.O_DIRECTORY,
            create_folders=create,
            check=lambda folder: _check_enterable(folder, forbidden, path),
        )
    try:
        with translating(path):
            _check_not_the_kernels(current, path)
        yield current
    finally:
        os.close(current)


def _identities(folders: Iterable[Path]) -> Iterator[tuple[int, int]]:
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            found = folder.stat()
            yield found.st_dev, found.st_ino


def _check_enterable(folder: int, forbidden: set[tuple[int, int]], path: str) -> None:
    if forbidden:
        found = os.fstat(folder)
        if (found.st_dev, found.st_ino) in forbidden:
            raise FileRefused(path, "it belongs to the host", hint="the host's state is reached through its commands")


def _check_not_the_kernels(descriptor: int, path: str) -> None:
    if sys.platform == "linux" and _file_system(descriptor) in _KERNEL:
        raise FileRefused(path, "it is the kernel's view of itself, not a file on a disk")


def _file_system(descriptor: int) -> int:
    """The number of the kind of file system, as statfs(2) has it."""
    import ctypes  # noqa: PLC0415  a host that touches no files does without

    buffer = ctypes.create_string_buffer(256)
    library = ctypes.CDLL(None, use_errno=True)
    if library.fstatfs(descriptor, buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    kind: int = struct.unpack_from("l", buffer)[0]
    return kind & 0xFFFFFFFF


@contextmanager
def opened(folder: int, name: str, path: str) -> Iterator[tuple[int, os.stat_result]]:
    """An ordinary file, for reading.

    Raises:
        FileMissing: it is not there.
        FileRefused: it is a link, a folder, a pipe, a device or the kernel's.
        FileFailed: the system refuses.
    """
    with translating(path):
        # before it is opened: opening alone does something to some devices
        ordinary(folder, name, path)
        descriptor = os.open(name, _READ, dir_fd=folder)
    try:
        with translating(path):
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise FileRefused(path, "what is there is no ordinary file")
        yield descriptor, found
    finally:
        os.close(descriptor)


def ordinary(folder: int, name: str, path: str) -> os.stat_result:
    """What is known about an ordinary file.

    Raises:
        FileMissing: it is not there.
        FileRefused: it is something else.
        FileFailed: the system refuses.
    """
    with translating(path):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):
        raise FileRefused(path, "what is there is no ordinary file")
    return found


def digest_of(descriptor: int) -> str:
    """The SHA-256 of a whole file, in hexadecimal. Stops when whoever waits for it no longer does."""
    digest = hashlib.sha256()
    offset = 0
    while piece := os.pread(descriptor, PIECE, offset):
        from_thread.check_cancelled()
        digest.update(piece)
        offset += len(piece)
    return digest.hexdigest()


def settle(folder: int, path: str) -> None:
    """Have the names in a folder on the disk.

    Raises:
        FileFailed: the system refuses. What was changed is changed.
    """
    try:
        os.fsync(folder)
    except OSError as error:
        raise FileFailed(path, error.strerror or type(error).__name__, happened=True) from error
