"""The files that SQLite opens and removes are those that were allowed, in the folders that were checked.

SQLite names files by their whole path each time, and finds the names of some in files that others may have written (a
journal says which journal it belongs to). Its library lets a program put functions in the place of the system's `open`,
`stat` and `unlink`; those here do their work relative to a folder that is held open, follow no link, take only plain
files with one name, and refuse every path that does not belong to a database of the session. Reading and writing go
straight to the system.

The functions hold for the library that `apsw` brings along, and only in threads that are inside ``only``.

They need Python's own lock, and SQLite calls some of them while it holds one of its own, which closing a connection
needs as well, with Python's lock held. So everything that may open a database, its log or its shared memory, and
everything that closes a connection, happens inside ``alone``; later in a session, only files are opened for which
SQLite holds no lock.
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
        path: of the file, absolute, without links.
        folder: the descriptor of its folder, which stays open as long as the database is used.
        owner: whom the file belongs to.
    """

    path: str
    folder: int
    owner: int

    @property
    def folder_path(self) -> str:
        """The path of its folder."""
        return os.path.dirname(self.path)  # noqa: PTH120  text that SQLite made from text, not a place to look at

    def name_of(self, path: str) -> str | None:
        """The name of a file in the folder, if it is the database's or that of a companion."""
        rest = path.removeprefix(self.path)
        if rest == path or not (rest == "" or rest in COMPANIONS):
            return None
        return os.path.basename(path)  # noqa: PTH119


# one thread at a time opens and closes
alone = threading.Lock()


class _Thread(threading.local):
    allowed: tuple[AllowedDatabase, ...] | None = None
    refused: str | None = None


_thread = _Thread()


@contextmanager
def only(allowed: Iterable[AllowedDatabase]) -> Iterator[Callable[[], str | None]]:
    """Let this thread's SQLite open these databases and nothing else.

    Yields:
        what tells the path that was refused last, if one was.
    """
    _installed()
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
            # after a file was made or removed, its folder is flushed
            return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=database.folder)
    _thread.refused = path
    raise PermissionError(errno.EACCES, "not one of the session's databases")


def _open_companion(database: AllowedDatabase, path: str, name: str, flags: int, mode: int) -> int:
    # a pipe would be waited for
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(name, flags, mode, dir_fd=database.folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            _thread.refused = path
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or found.st_uid not in {database.owner, os.geteuid()}:
        # under its other name it is another file, with other rights; somebody else's journal would be played back
        os.close(descriptor)
        _thread.refused = path
        raise PermissionError(errno.EACCES, "no plain file with one name and this owner")
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


def _answering(work: Callable[..., int | None]) -> Callable[..., int]:
    """A function of C: -1 and ``errno`` for an exception."""

    def call(path: bytes, *arguments: Any) -> int:
        try:
            return work(os.fsdecode(path), *arguments) or 0
        except OSError as error:
            ctypes.set_errno(error.errno or errno.EIO)
            return -1

    return call


@define
class _Installed:
    """The functions in place, kept alive, and what was there before."""

    vfs: apsw.VFS
    before: dict[str, int] = field(factory=dict)
    functions: list[Any] = field(factory=list)

    def put(self, name: str, function: Any) -> None:
        self.before[name] = self.vfs.xGetSystemCall(name) or 0
        self.functions.append(function)
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        if not self.vfs.xSetSystemCall(name, address):
            raise RuntimeError(f"this build of SQLite does not let its `{name}` be replaced")

    def restore(self) -> None:
        for name, address in self.before.items():
            self.vfs.xSetSystemCall(name, address)


_lock = threading.Lock()
_state: list[_Installed] = []


def _installed() -> None:
    with _lock:
        if _state:
            return
        installed = _Installed(apsw.VFS("sideband-sql", "unix"))
        installed.put("open", _OPEN(_answering(_open)))
        installed.put("unlink", _UNLINK(_answering(_unlink)))
        if sys.platform == "linux":
            installed.put("stat", _STAT(_stat_with(installed.vfs)))
        _state.append(installed)
        # connections that others leave open close later than this module's names are there
        atexit.register(installed.restore)


def _stat_with(vfs: apsw.VFS) -> Callable[[bytes, int], int]:
    """SQLite takes a descriptor that it still has if `stat` says that a path is the same file."""
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
            # one that is open with O_PATH does not drop the locks of the file when it is closed
            descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=database.folder)
        except OSError as error:
            ctypes.set_errno(error.errno or errno.EIO)
            return -1
        try:
            return int(by_descriptor(descriptor, buffer))
        finally:
            os.close(descriptor)

    return call
