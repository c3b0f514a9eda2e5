"""Restricts the files that SQLite opens and removes to the allowed ones, in the folders that were checked.

SQLite passes a full path to each system call, and reads the names of some files from files that others may have written
(a journal names its super-journal). Its library lets a program replace the system calls `open`, `stat` and `unlink`.
The replacements in this module work relative to a folder that is held open, follow no link, accept only regular files
with one hard link, and reject every path that does not belong to a database of the session. Reads and writes are not
intercepted.

The replacements apply to the library that is bundled with `apsw`, and only in threads inside ``allow_only``.

They need the GIL, and SQLite calls some of them while it holds one of its mutexes. Closing a connection needs that
mutex too, with the GIL held. To avoid a deadlock, everything that may open a database, its log or its shared memory,
and everything that closes a connection, runs under ``open_close_lock``. The files that a session opens later are opened
while SQLite holds no mutex.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw
from attrs import define, field, frozen

# files that SQLite keeps beside a database
COMPANIONS = ("-journal", "-wal", "-shm")

_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, use_errno=True)
_UNLINK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, use_errno=True)
_STAT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, use_errno=True)
_FSTAT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, use_errno=True)
_RANDOM = "/dev/urandom"


@frozen
class AllowedDatabase:
    """A database that a session may open.

    Args:
        path: the absolute path of the file, without links.
        folder: the descriptor of its folder, open while the database is used.
        owner: the user ID of the file's owner.
    """

    path: str
    folder: int
    owner: int

    @property
    def folder_path(self) -> str:
        """The path of its folder."""
        return os.path.dirname(self.path)  # noqa: PTH120  SQLite derives this path in the same way

    def name_of(self, path: str) -> str | None:
        """Return the name of a file within the folder if it is the database or a companion, otherwise ``None``."""
        rest = path.removeprefix(self.path)
        if rest == path or not (rest == "" or rest in COMPANIONS):
            return None
        return os.path.basename(path)  # noqa: PTH119


# serializes opening and closing
open_close_lock = threading.Lock()


class _Thread(threading.local):
    allowed: tuple[AllowedDatabase, ...] | None = None
    refused: str | None = None


_thread = _Thread()


@contextmanager
def allow_only(allowed: Iterable[AllowedDatabase]) -> Iterator[Callable[[], str | None]]:
    """Allow SQLite to open only these databases in this thread.

    Yields:
        A function that returns the path that was denied last, or ``None``.
    """
    _install()
    before = _thread.allowed, _thread.refused
    _thread.allowed, _thread.refused = tuple(allowed), None
    try:
        yield lambda: _thread.refused
    finally:
        _thread.allowed, _thread.refused = before


def _open(path: str, flags: int, mode: int) -> int:
    allowed = _thread.allowed
    if allowed is None or path == _RANDOM:
        return os.open(path, flags, mode)
    for database in allowed:
        if (name := database.name_of(path)) is not None:
            return _open_companion(database, path, name, flags, mode)
        if path == database.folder_path:
            # SQLite syncs the folder after it creates or removes a file
            return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=database.folder)
    _thread.refused = path
    raise PermissionError(errno.EACCES, "not one of the session's databases")


def _open_companion(database: AllowedDatabase, path: str, name: str, flags: int, mode: int) -> int:
    # O_NONBLOCK: opening a pipe would block
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(name, flags, mode, dir_fd=database.folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            _thread.refused = path
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or found.st_uid not in {database.owner, os.geteuid()}:
        # another hard link has other rights, and SQLite would replay a journal of another user
        os.close(descriptor)
        _thread.refused = path
        raise PermissionError(errno.EACCES, "not a regular file with one hard link and this owner")
    return descriptor


def _unlink(path: str) -> None:
    allowed = _thread.allowed
    if allowed is None:
        os.unlink(path)  # noqa: PTH108
        return
    for database in allowed:
        name = database.name_of(path)
        if name is not None and path != database.path:
            os.unlink(name, dir_fd=database.folder)
            return
    _thread.refused = path
    raise PermissionError(errno.EACCES, "not a companion of one of the session's databases")


def _returning_errno(work: Callable[..., int | None]) -> Callable[..., int]:
    """Wrap a function for C: return -1 and set ``errno`` on an exception."""

    def call(path: bytes, *arguments: Any) -> int:
        try:
            return work(os.fsdecode(path), *arguments) or 0
        except OSError as error:
            ctypes.set_errno(error.errno or errno.EIO)
            return -1

    return call


@define
class _Installed:
    """The installed functions, kept alive, and the original addresses."""

    vfs: apsw.VFS
    before: dict[str, int] = field(factory=dict)
    functions: list[Any] = field(factory=list)

    def put(self, name: str, function: Any) -> None:
        self.before[name] = self.vfs.xGetSystemCall(name) or 0
        self.functions.append(function)
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        if not self.vfs.xSetSystemCall(name, address):
            raise RuntimeError(f"this build of SQLite does not support replacing `{name}`")

    def restore(self) -> None:
        for name, address in self.before.items():
            self.vfs.xSetSystemCall(name, address)


_lock = threading.Lock()
_state: list[_Installed] = []


def _install() -> None:
    with _lock:
        if _state:
            return
        installed = _Installed(apsw.VFS("sideband-sql", "unix"))
        installed.put("open", _OPEN(_returning_errno(_open)))
        installed.put("unlink", _UNLINK(_returning_errno(_unlink)))
        if sys.platform == "linux":
            installed.put("stat", _STAT(_stat_with(installed.vfs)))
        _state.append(installed)
        # connections that are left open are closed after this module's globals are gone
        atexit.register(installed.restore)


def _stat_with(vfs: apsw.VFS) -> Callable[[bytes, int], int]:
    """Return a `stat` for SQLite, which reuses an open descriptor if `stat` reports that a path is the same file."""
    by_path = _STAT(vfs.xGetSystemCall("stat") or 0)
    by_descriptor = _FSTAT(vfs.xGetSystemCall("fstat") or 0)

    def call(path: bytes, buffer: int) -> int:
        text = os.fsdecode(path)
        for database in _thread.allowed or ():
            if (name := database.name_of(text)) is not None:
                return _stat_in(database, name, buffer)
        return int(by_path(path, buffer))

    def _stat_in(database: AllowedDatabase, name: str, buffer: int) -> int:
        try:
            # closing a descriptor opened with O_PATH does not drop the file's locks
            descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=database.folder)
        except OSError as error:
            ctypes.set_errno(error.errno or errno.EIO)
            return -1
        try:
            return int(by_descriptor(descriptor, buffer))
        finally:
            os.close(descriptor)

    return call
