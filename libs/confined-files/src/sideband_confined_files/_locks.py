"""Locks between hosts that change names in the same folder. No process that is not a host can hold them."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

from attrs import frozen
from sideband.state import FileLock

# Lock files are never deleted, so their number is fixed. Folders that share one wait for each other without need.
_LOCKS = 64
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


@frozen
class FolderLocks:
    """Lock files for folders, in private folders of hosts.

    A lock on the folder itself would be simpler, but any process that can open a folder for reading can lock it.

    Two kinds of hosts exclude each other: those that share a home, also in several containers, by files in
    ``SIDEBAND_HOME/locks``; and those of one user with different homes by files in ``~/.sideband/locks``. If that
    folder cannot be used, the latter do not.

    Args:
        home: the host's state folder.
    """

    home: Path

    @property
    def private(self) -> tuple[Path, ...]:
        """The folders of the lock files. Programs must not have access to them."""
        own = self.home / "locks"
        try:
            shared = Path.home() / ".sideband" / "locks"
        except RuntimeError:  # the user has no home directory
            return (own,)
        return (own,) if shared == own else (own, shared)

    @contextmanager
    def held(self, *folders: int) -> Iterator[None]:
        """Hold the locks of these folders while the body changes names in them. Waiting blocks.

        In a thread of anyio, cancellation ends the wait. All hosts acquire locks in the same order, which prevents
        deadlocks. On a file system that does not support locks, the body runs without one.

        Args:
            folders: the descriptors of the folders.

        Raises:
            OSError: if the lock file in the host's own folder cannot be opened.
        """
        names = sorted({_name(os.fstat(folder)) for folder in folders})
        with ExitStack() as held:
            for private in self.private:
                for name in names:
                    self._hold(private, name, held)
            yield

    def _hold(self, private: Path, name: str, held: ExitStack) -> None:
        try:
            private.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            private.mkdir(mode=0o700, exist_ok=True)
            held.enter_context(FileLock(private / name)).acquire(math.inf)
        except OSError as error:
            if private.parent == self.home and error.errno not in _NO_LOCKS:
                raise


def _name(folder: os.stat_result) -> str:
    """Return the name of a folder's lock file. Every host gives the same answer, also in another container."""
    digest = sha256(f"{folder.st_dev}:{folder.st_ino}".encode()).digest()
    return f"{int.from_bytes(digest[:8], 'big') % _LOCKS:02}"
