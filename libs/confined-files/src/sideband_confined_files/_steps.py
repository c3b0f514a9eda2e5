"""Walk from folder to folder by file descriptor. No step follows a link, so a concurrent swap cannot lead out.

Everything here blocks and runs in a worker thread.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from anyio import from_thread
from sideband.state import open_beneath

from ._errors import FileError, FileFailed, FileMissing, FileRefused, FileTaken
from ._recorded import RecordedFolders, file_system, identity_of, open_recorded

PIECE = 1024 * 1024
DESCRIPTORS = Path("/proc/self/fd")
# without O_NONBLOCK, opening a pipe waits for its other end
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# Kernel file systems: their files show, among other things, the memory and environment of other processes. The magic
# numbers are those of statfs(2): proc, sysfs, debugfs, tracefs, securityfs, configfs, cgroup, cgroup2, bpf, pstore,
# efivarfs, binfmt_misc, selinux, smackfs, nsfs, fusectl.
_KERNEL = frozenset(
    {0x9FA0, 0x62656572, 0x64626720, 0x74726163, 0x73636673, 0x62656570, 0x27E0EB, 0x63677270, 0xCAFE4A11, 0x6165676C}
    | {0xDE5E81E4, 0x42494E4D, 0xF97CFF8C, 0x43415D53, 0x6E736673, 0x65735543}
)
_REFUSED = {
    errno.ELOOP: "a parent folder is a file or a symbolic link",
    errno.ENOTDIR: "a parent folder is a file or a symbolic link",
    errno.EISDIR: "it is a folder",
    errno.ENOTEMPTY: "the folder is not empty",
    errno.ENAMETOOLONG: "a component is too long for this file system",
    errno.EILSEQ: "this file system does not support its characters",
    errno.EXDEV: "the target is on another file system; copy the file, then delete it",
    errno.ENXIO: "it is not a regular file",
}


@contextmanager
def translating(path: str) -> Iterator[None]:
    """Translate an ``OSError`` about ``path`` into an error of this package."""
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
    root: Path,
    parts: Sequence[str],
    shown: Callable[[int], str],
    *,
    create: bool = False,
    excluded: Iterable[Path] = (),
    recorded: RecordedFolders | None = None,
    seen: list[str] | None = None,
) -> Iterator[int]:
    """Open the folder at ``parts`` below ``root``. The descriptor can be used for listing, locking and syncing.

    Args:
        root: the starting folder; trusted, except that it must not be a link itself.
        parts: the names of the folders to walk.
        shown: returns the path of the first components as shown in messages; for one more than all, that of the file.
        create: create missing folders, accessible to the owner only.
        excluded: folders that are never entered, whatever their path.
        recorded: the recorded folders; if given, the path must lead to the same folder.
        seen: a list to which the identities of all folders on the path are added.

    Raises:
        FileMissing: if a folder does not exist.
        FileRefused: if a folder in the path is a file, a link, excluded, or on a kernel file system.
        FileReplaced: if it is not the recorded folder.
        FileFailed: if a system call fails.
    """
    path = shown(len(parts) + 1)
    with translating(path):
        forbidden = set(identities_of(excluded))

        def check(folder: int) -> None:
            check_enterable(folder, forbidden, path)
            if seen is not None:
                seen.append(identity_of(folder))

        if recorded is not None:
            current = open_recorded(root, parts, recorded, shown, check, create=create)
        else:
            if create:
                root.mkdir(mode=0o700, parents=True, exist_ok=True)
            # the walk uses O_PATH descriptors, which cannot be listed, locked or synced; "." reopens the last one
            current = open_beneath(root, (*parts, "."), os.O_DIRECTORY, create_folders=create, check=check)
    try:
        with translating(path):
            check_not_the_kernels(current, path)
        yield current
    finally:
        os.close(current)


def identities_of(folders: Iterable[Path]) -> Iterator[tuple[int, int]]:
    """Yield the device and inode of each of these folders that exists."""
    for folder in folders:
        # what this user cannot look up cannot be entered either
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            found = folder.stat()
            yield found.st_dev, found.st_ino


def check_enterable(folder: int, forbidden: set[tuple[int, int]], path: str) -> None:
    """Check that a folder may be entered.

    Raises:
        FileRefused: if it must not be.
    """
    if forbidden:
        found = os.fstat(folder)
        if (found.st_dev, found.st_ino) in forbidden:
            raise FileRefused(path, "it belongs to the host", hint="use the commands of `sideband` instead")


def check_not_the_kernels(descriptor: int, path: str) -> None:
    """Check that a file or folder is not on a kernel file system.

    Raises:
        FileRefused: if it is.
    """
    if sys.platform == "linux" and file_system(descriptor) in _KERNEL:
        raise FileRefused(path, "it is on a kernel file system, not on a disk")


@contextmanager
def opened(folder: int, name: str, path: str) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file for reading.

    Raises:
        FileMissing: if it does not exist.
        FileRefused: if it is a link, a folder, a pipe, a device or on a kernel file system.
        FileFailed: if a system call fails.
    """
    descriptor, found = open_regular(folder, name, path)
    try:
        yield descriptor, found
    finally:
        os.close(descriptor)


def open_regular(folder: int, name: str, path: str, *, is_listed: bool = False) -> tuple[int, os.stat_result]:
    """Open a regular file for reading, as ``opened`` does. The caller closes the descriptor.

    Args:
        folder: the descriptor of its folder.
        name: its name.
        path: its path as shown in messages.
        is_listed: whether the folder was just listed, and the name was that of a regular file.
    """
    # A search opens many files: context managers for the steps would take longer than the system calls.
    try:
        if not is_listed:  # check before opening: opening some devices has side effects
            _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
        descriptor = os.open(name, _READ, dir_fd=folder)
        try:
            found = os.fstat(descriptor)
            _check_regular(found, path)
        except BaseException:
            os.close(descriptor)
            raise
    except FileError:
        raise
    except OSError as error:
        raise _translated(path, error) from error
    return descriptor, found


def ordinary(folder: int, name: str, path: str) -> os.stat_result:
    """Return the metadata of a regular file.

    Raises:
        FileMissing: if it does not exist.
        FileRefused: if it is not a regular file.
        FileFailed: if a system call fails.
    """
    with translating(path):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    _check_regular(found, path)
    return found


def _check_regular(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise FileRefused(path, "it is not a regular file")


def digest_of(descriptor: int) -> str:
    """Return the SHA-256 of a whole file in hexadecimal. Stops when the waiting task is cancelled."""
    digest = hashlib.sha256()
    offset = 0
    while piece := os.pread(descriptor, PIECE, offset):
        from_thread.check_cancelled()
        digest.update(piece)
        offset += len(piece)
    return digest.hexdigest()


def settle(folder: int, path: str) -> None:
    """Flush a folder's entries to disk.

    Raises:
        FileFailed: if a system call fails. The change itself has been made.
    """
    try:
        os.fsync(folder)
    except OSError as error:
        raise FileFailed(path, error.strerror or type(error).__name__, happened=True) from error
