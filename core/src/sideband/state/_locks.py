"""Advisory locks between processes, and within one. The system releases them however their holder ends."""

from __future__ import annotations

import errno
import fcntl
import math
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

import anyio
from anyio import from_thread
from attrs import define, field

# A lock is polled for: waiting in the system call could not be cancelled.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.000_05, 0.005
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file or folder, unless another holder is in the way; whether it is locked now.

    Args:
        descriptor: which one. It holds the lock until it is closed.
        shared: hold it beside others who share it.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(descriptor: int, patience: float = math.inf) -> bool:
    """Block until it is locked, for at most ``patience`` seconds; in a thread of anyio, until it is cancelled."""
    gives_up, pause = time.monotonic() + patience, _FIRST_PAUSE
    while not try_lock(descriptor):
        if time.monotonic() > gives_up:
            return False
        with suppress(RuntimeError):  # no thread of anyio
            from_thread.check_cancelled()
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return True


@define(eq=False)
class FileLock:
    """A lock on a file of its own, which is made, for its owner only, when the lock is first taken.

    Leaving it as a context manager, and ``close``, give it back.

    Args:
        path: the file. It stays when the lock is given back.

    Example:
        >>> from tempfile import mkdtemp
        >>> with FileLock(Path(mkdtemp(), "lock")) as lock:
        ...     lock.acquire(patience=10)
        True
    """

    path: Path
    _descriptor: int | None = field(default=None, init=False)

    @property
    def descriptor(self) -> int:
        """The descriptor of the file, which is opened if it is not open.

        Raises:
            OSError: it can't be opened.
        """
        if self._descriptor is None:
            self._descriptor = os.open(self.path, _FLAGS, 0o600)
        return self._descriptor

    def try_acquire(self) -> bool:
        """Take it, unless another has it; whether it was taken.

        Raises:
            OSError: its file can't be opened or locked.
        """
        return try_lock(self.descriptor)

    def acquire(self, patience: float) -> bool:
        """Take it, once others have given it back; whether that was within ``patience`` seconds.

        It blocks. In a thread of anyio, it can be cancelled.

        Raises:
            OSError: its file can't be opened or locked.
        """
        return wait_for_lock(self.descriptor, patience)

    async def acquire_async(self, patience: float) -> bool:
        """``acquire`` for async code, without a thread.

        Raises:
            OSError: its file can't be opened or locked.
        """
        taken = self.try_acquire()
        with anyio.move_on_after(patience):
            pause = _FIRST_PAUSE
            while not taken:
                await anyio.sleep(pause)
                taken = self.try_acquire()
                pause = min(2 * pause, _LONGEST_PAUSE)
        return taken

    def release(self) -> None:
        """Give it back, and keep its file open for the next time."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give it back, and close its file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


@contextmanager
def locked_folders(*folders: int) -> Iterator[None]:
    """Be the only one, of all processes that do the same, who changes names in these folders. Waiting for it blocks.

    Several are locked in an order that is the same for all, so that two never wait for each other. On a file system
    that has no locks, nothing is waited for.

    Args:
        folders: their descriptors.
    """
    distinct = {(found.st_dev, found.st_ino): folder for folder in folders if (found := os.fstat(folder))}
    with ExitStack() as held:
        for _, folder in sorted(distinct.items()):
            try:
                wait_for_lock(folder)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            else:
                held.callback(fcntl.flock, folder, fcntl.LOCK_UN)
        yield
