"""Build a folder under a temporary name, then rename it into place. Remove temporary folders of killed hosts."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from attrs import frozen

from ._locks import try_lock
from ._writing import sync_folder

_PREFIX = ".new-"


@frozen
class TemporaryFolder:
    """A folder under a temporary name. Its creator must call ``remove``, also after ``put_in_place``.

    The creator holds a lock on the folder until it exits. An unlocked temporary folder is therefore abandoned. Unlike
    a process id, a lock means the same in every container.

    Args:
        path: the temporary path.
    """

    path: Path
    _descriptor: int

    @classmethod
    def make(cls, parent: Path, prefix: str = _PREFIX) -> TemporaryFolder:
        """Create a folder that only this user can access.

        Args:
            parent: the parent of the temporary and the final folder. It is created if it does not exist.
            prefix: the start of the names of all temporary folders of this kind.
        """
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            path = parent / f"{prefix}{token_hex(8)}"
            path.mkdir(mode=0o700)
            with suppress(FileNotFoundError):
                descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                if _lock(descriptor) and path.exists():
                    return cls(path, descriptor)
                # Another host has removed it before it was locked.
                os.close(descriptor)

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


def remove_temporary_folders(parent: Path, prefix: str = _PREFIX) -> None:
    """Remove the temporary folders of this user's killed hosts. Those of running hosts are kept."""
    for path in parent.glob(f"{prefix}*"):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid() and try_lock(descriptor):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        return try_lock(descriptor)
    except OSError:
        # Some network file systems do not support locks on folders. No folder is considered abandoned there.
        return True
