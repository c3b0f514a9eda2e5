"""Build a folder under a temporary name, then rename it into place. Remove temporary folders of killed hosts."""

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
    """A folder under a temporary name. Its creator must call ``remove``, also after ``put_in_place``.

    The creator holds a lock on the folder until it exits. An unlocked temporary folder is therefore abandoned.

    Args:
        path: the temporary path.
    """

    path: Path
    _descriptor: int

    @classmethod
    def make(cls, parent: Path) -> TemporaryFolder:
        """Create a temporary folder, with access for its owner only.

        Args:
            parent: the parent of the temporary and the final folder. It is created if it does not exist.
        """
        parent.mkdir(parents=True, exist_ok=True)
        remove_temporary_folders(parent)
        path = parent / f"{_PREFIX}{uuid4().hex}"
        # Lock the parent, because the new folder looks abandoned until it is locked itself.
        with _locked(parent):
            path.mkdir()
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            # Some network file systems do not support locks on folders. No folder is considered abandoned there.
            with suppress(OSError):
                wait_for_lock(descriptor)
        return cls(path, descriptor)

    def put_in_place(self, target: Path) -> None:
        """Sync the folder to disk and rename it to ``target``.

        If another host has already created ``target``, leave that folder in place.
        """
        for folder in sorted({self.path, *(path for path in self.path.rglob("*") if path.is_dir())}):
            # Workers may run as another user, so the umask must not apply.
            folder.chmod(0o755)
            sync_folder(folder)
        try:
            self.path.rename(target)
        except OSError:
            if not target.is_dir():
                raise
        sync_folder(target.parent)

    def remove(self) -> None:
        """Remove the folder if it was not put in place. Ignore errors."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)


def remove_temporary_folders(parent: Path) -> None:
    """Remove the temporary folders of killed hosts. Those of running hosts are kept."""
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
    """Hold an exclusive lock on a folder. Hold it only briefly."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with locked_folders(descriptor):
            yield
    finally:
        os.close(descriptor)
