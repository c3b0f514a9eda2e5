"""Advisory file locks, between processes and within one process. The kernel releases them when the holder exits."""

from __future__ import annotations

import fcntl
import math
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import anyio
from anyio import from_thread
from attrs import define, field

# Poll, because a blocking system call cannot be cancelled.
_FIRST_PAUSE, _MAX_PAUSE = 0.000_05, 0.005
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Try to lock an open file or folder without blocking, and return whether it is locked now.

    Args:
        descriptor: the open file or folder. Closing it releases the lock.
        shared: whether to take a shared lock instead of an exclusive one.

    Raises:
        OSError: if the file system does not support locks.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(descriptor: int, patience: float = math.inf) -> bool:
    """Block until it is locked, for at most ``patience`` seconds, and return whether it is locked now.

    In a thread of anyio, cancellation ends the wait.
    """
    gives_up, pause = time.monotonic() + patience, _FIRST_PAUSE
    while not try_lock(descriptor):
        if time.monotonic() > gives_up:
            return False
        with suppress(RuntimeError):  # not in a thread of anyio
            from_thread.check_cancelled()
        time.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE)
    return True


@define(eq=False)
class FileLock:
    """A lock on a dedicated file, which is created with access for its owner only when the lock is first acquired.

    ``close`` and the end of the ``with`` block release the lock.

    Args:
        path: the file. It is not deleted when the lock is released.

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
        """The descriptor of the file, which is opened on first access.

        Raises:
            OSError: if the file cannot be opened.
        """
        if self._descriptor is None:
            self._descriptor = os.open(self.path, _FLAGS, 0o600)
        return self._descriptor

    def try_acquire(self) -> bool:
        """Try to acquire the lock without blocking, and return whether it was acquired.

        Raises:
            OSError: if the file cannot be opened or locked.
        """
        return try_lock(self.descriptor if self._descriptor is None else self._descriptor)

    def acquire(self, patience: float) -> bool:
        """Block until the lock is acquired, for at most ``patience`` seconds, and return whether it was acquired.

        In a thread of anyio, cancellation ends the wait.

        Raises:
            OSError: if the file cannot be opened or locked.
        """
        return wait_for_lock(self.descriptor, patience)

    async def acquire_async(self, patience: float) -> bool:
        """Wait like ``acquire``, without a thread.

        Raises:
            OSError: if the file cannot be opened or locked.
        """
        taken = self.try_acquire()
        with anyio.move_on_after(patience):
            pause = _FIRST_PAUSE
            while not taken:
                await anyio.sleep(pause)
                taken = self.try_acquire()
                pause = min(2 * pause, _MAX_PAUSE)
        return taken

    def release(self) -> None:
        """Release the lock, and keep the file open for the next time."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the lock and close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
