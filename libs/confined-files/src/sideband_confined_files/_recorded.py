"""Recognize recorded folders: an effect is only undone in the folder in which it happened, whatever is at its path."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import token_hex

from attrs import frozen
from sideband.state import write_state_file

from ._errors import FileReplaced

# O_PATH: traversing a folder does not require the permission to list it.
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
REPLACED_FOLDERS = "replaced-folders"
"""The name of the folder in `SIDEBAND_HOME` for ``RecordedFolders.replacements``."""
_MOST_REPLACEMENTS = 1_000
_OVERLAY = 0x794C7630
# see statx(2)
_EMPTY_PATH = 0x1000
_BIRTH = 0x800
_BIRTH_OFFSET = 80


@frozen
class RecordedFolders:
    """The folders on the path of a file at the time of an effect.

    If a folder does not exist any more, an undo may create it again in the recorded parent folder. The new folder then
    counts as the recorded one, also for later undos: ``replacements`` stores its identity.

    Args:
        identities: of the folder that contains all paths, and of those on the path, up to the parent of the file.
        replacements: a folder of the host for the identities of folders that were created again.
    """

    identities: Sequence[str]
    replacements: Path

    def matches(self, depth: int, shown: str, folder: int) -> bool:
        """Return whether a folder is the recorded one.

        Args:
            depth: the number of components of its path.
            shown: its path as shown in messages.
            folder: its descriptor.
        """
        if depth >= len(self.identities):
            return False
        now, expected = identity_of(folder), self.identities[depth]
        for _ in range(_MOST_REPLACEMENTS):
            if expected == now:
                return True
            try:
                expected = self._entry(shown, expected).read_text()
            except FileNotFoundError:
                break
        return False

    def check(self, depth: int, shown: str, path: str, folder: int) -> None:
        """Check that a folder is the recorded one; arguments as for ``matches``, with the path of the file.

        Raises:
            FileReplaced: if it is not.
        """
        if not self.matches(depth, shown, folder):
            raise FileReplaced(path, shown, "another folder")

    def replace(self, depth: int, shown: str, folder: int) -> None:
        """Store that a folder was created again; arguments as for ``matches``.

        Raises:
            StateUnwritable: if this cannot be stored.
        """
        if depth < len(self.identities) and not self.matches(depth, shown, folder):
            write_state_file(self._entry(shown, self.identities[depth]), identity_of(folder))

    def _entry(self, shown: str, identity: str) -> Path:
        return self.replacements / hashlib.sha256(os.fsencode(f"{shown}\0{identity}")).hexdigest()


def open_recorded(
    root: Path,
    parts: Sequence[str],
    recorded: RecordedFolders,
    shown: Callable[[int], str],
    check: Callable[[int], None],
    *,
    create: bool,
) -> int:
    """Open the folder at ``parts`` below ``root``, if it is the recorded one. No step follows a link.

    Only the last folder must be the recorded one: its identity does not depend on those above it, which differ when,
    for instance, a container starts again with the same volume.

    Args:
        root: the starting folder.
        parts: the names of the folders to walk.
        recorded: the recorded folders.
        shown: returns the path of the first components as shown in messages; with all, that of the file.
        check: called with the descriptor of each folder. It may raise to refuse.
        create: create missing folders below a recorded one.

    Raises:
        FileReplaced: if the folder, or the last one that exists, is not the recorded one.
        OSError: if a folder does not exist, or a system call failed.
    """
    path = shown(len(parts) + 1)
    current = _open_root(root, recorded, shown(0), create=create)
    try:
        check(current)
        for depth, name in enumerate(parts, start=1):
            try:
                following = os.open(name, _STEP, dir_fd=current)
            except FileNotFoundError:
                recorded.check(depth - 1, shown(depth - 1), path, current)
                if not create:
                    raise
                following = _create(current, name, path, shown(depth))
                recorded.replace(depth, shown(depth), following)
            except OSError:
                check_kind(current, name, path, shown(depth), stat.S_ISDIR)
                raise
            os.close(current)
            current = following
            check(current)
        recorded.check(len(parts), shown(len(parts)), path, current)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=current)
    finally:
        os.close(current)


def _open_root(root: Path, recorded: RecordedFolders, shown: str, *, create: bool) -> int:
    try:
        return os.open(root, _STEP)
    except FileNotFoundError:
        if not create:
            raise
    # its parent is trusted
    root.mkdir(mode=0o700, parents=True)
    current = os.open(root, _STEP)
    recorded.replace(0, shown, current)
    return current


def _create(parent: int, name: str, path: str, shown: str) -> int:
    """Create a folder, but accept none that another process has created meanwhile."""
    try:
        return create_folder(parent, name)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise FileReplaced(path, shown, "another folder") from None
        raise


def create_folder(parent: int, name: str) -> int:
    """Create a folder, accessible to the owner only, and return its descriptor.

    Another process may move another folder to the name at any moment. Therefore it is created, and opened, under a
    name that is not known to others. If one finds it out nevertheless, what it can put there is an empty folder only.
    An empty folder that was created at the name meanwhile is replaced.

    Raises:
        OSError: if the name exists, or a system call failed.
    """
    hidden = f".sideband-{token_hex(8)}"
    os.mkdir(hidden, mode=0o700, dir_fd=parent)
    try:
        created = os.open(hidden, _LISTED, dir_fd=parent)
    except BaseException:
        os.rmdir(hidden, dir_fd=parent)
        raise
    try:
        _check_empty(created)
        os.rename(hidden, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        os.close(created)
        with suppress(OSError):  # another folder is there by now
            os.rmdir(hidden, dir_fd=parent)
        raise
    return created


def _check_empty(folder: int) -> None:
    with os.scandir(folder) as found:
        if any(found):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


@contextmanager
def opened_folder(parent: int, name: str) -> Iterator[int]:
    """Open a folder in another one, without following a link."""
    folder = os.open(name, _STEP, dir_fd=parent)
    try:
        yield folder
    finally:
        os.close(folder)


def check_kind(folder: int, name: str, path: str, shown: str, is_expected: Callable[[int], bool]) -> None:
    """Check the kind of a name in a folder, if it exists.

    Raises:
        FileReplaced: if it is of another kind; describes it.
    """
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if is_expected(mode):
            return
        what = "a folder" if stat.S_ISDIR(mode) else "a file" if stat.S_ISREG(mode) else "a pipe, socket or device"
        if stat.S_ISLNK(mode):
            what = f"a symbolic link to `{os.readlink(name, dir_fd=folder)}`"
    except FileNotFoundError:
        return
    raise FileReplaced(path, shown, what)


def identity_of(descriptor: int) -> str:
    """Return what identifies an open file or folder on this machine: file system, inode, and time of creation.

    The id of a file system is the same after a restart, unlike its device number, which is used where there is no id.
    The number of an inode may be used again once it was deleted; the time of creation tells both apart.

    Raises:
        OSError: if a system call failed.
    """
    found = os.fstat(descriptor)
    device = os.fstatvfs(descriptor).f_fsid or found.st_dev
    return f"{device:x}:{found.st_ino:x}:{_creation(descriptor):x}"


def _creation(descriptor: int) -> int:
    """Return the time of creation in nanoseconds, or 0 if it is unknown or not constant."""
    # an overlay reports a new time once it has copied a folder from a lower layer
    if sys.platform != "linux" or file_system(descriptor) == _OVERLAY:
        return 0
    buffer = ctypes.create_string_buffer(256)
    try:
        failed = _library().statx(descriptor, b"", _EMPTY_PATH, _BIRTH, buffer)
    except AttributeError:
        return 0  # a C library without `statx`
    (mask,) = struct.unpack_from("I", buffer)
    if failed or not mask & _BIRTH:
        return 0
    seconds, nanoseconds = struct.unpack_from("qI", buffer, _BIRTH_OFFSET)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def file_system(descriptor: int) -> int:
    """Return the magic number of a file system; see statfs(2).

    Raises:
        OSError: if the system call failed.
    """
    buffer = ctypes.create_string_buffer(256)
    if _library().fstatfs(descriptor, buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    kind: int = struct.unpack_from("l", buffer)[0]
    return kind & 0xFFFFFFFF


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
