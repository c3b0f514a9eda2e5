"""Folders that are filled where nobody looks, and put in place whole; those of killed hosts are told and removed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from attrs import frozen

from ._locks import locked_folders, try_lock, wait_for_lock
from ._writing import sync_folder

_PREFIX = ".new-"


@frozen
class TemporaryFolder:
    """A folder beside those that are complete. Whoever made it removes it, also once it has been put in place.

    The system holds a lock on it as long as its maker lives: so others know whether it is a leftover.

    Args:
        path: where it is until it is put in place.
    """

    path: Path
    _descriptor: int

    @classmethod
    def make(cls, parent: Path) -> TemporaryFolder:
        """A new one, for its owner only.

        Args:
            parent: the folder of those that are complete; made if it is not there.
        """
        parent.mkdir(parents=True, exist_ok=True)
        remove_temporary_folders(parent)
        path = parent / f"{_PREFIX}{uuid4().hex}"
        # Until it is locked itself, it looks like a leftover.
        with _locked(parent):
            path.mkdir()
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            # Some network file systems lock no folders; nothing is taken for a leftover there.
            with suppress(OSError):
                wait_for_lock(descriptor)
        return cls(path, descriptor)

    def put_in_place(self, target: Path) -> None:
        """Make it the folder of this name, by one rename, with the names in it on disk before that.

        If another host was faster, its folder stays, and this one is left to ``remove``.
        """
        for folder in sorted({self.path, *(path for path in self.path.rglob("*") if path.is_dir())}):
            # Workers may run as another user, whatever the umask of this one.
            folder.chmod(0o755)
            sync_folder(folder)
        try:
            self.path.rename(target)
        except OSError:
            if not target.is_dir():
                raise
        sync_folder(target.parent)

    def remove(self) -> None:
        """Remove what has not been put in place, as far as that is possible."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)


def remove_temporary_folders(parent: Path) -> None:
    """Remove what hosts that were killed while they filled it have left in this folder. Another host's stay."""
    with _locked(parent):
        for path in parent.glob(f"{_PREFIX}*"):
            if _is_abandoned(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(path: Path) -> bool:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            return try_lock(descriptor)
        finally:
            os.close(descriptor)
    return False


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one process at a time; for moments."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with locked_folders(descriptor):
            yield
    finally:
        os.close(descriptor)
