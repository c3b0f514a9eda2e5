"""The lock of a session: whoever writes it holds it, and it ends with the process, however that ends."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import define
from sideband.errors import StateUnwritable
from sideband.state import FileLock, make_home

from ._errors import SessionLocked


@define
class SessionLock:
    """A lock between processes, and between the agents of one process.

    Its file says which process holds it, and is there only while it is held.
    """

    _file: FileLock | None

    @classmethod
    def take(cls, folder: Path, session: str) -> SessionLock:
        """Lock the session with this id.

        Raises:
            SessionLocked: somebody has it.
            StateUnwritable: the folder can't be written.
        """
        make_home(folder)
        file = FileLock(folder / session)
        try:
            while not _take(file, session):
                file.close()
        except SessionLocked:
            file.close()
            raise
        except OSError as error:
            file.close()
            raise StateUnwritable(file.path, error) from error
        return cls(file)

    def release(self) -> None:
        """Give it back."""
        if self._file is not None:
            # Still held: whoever has opened the file in the meantime sees that it is gone, and makes a new one.
            self._file.path.unlink(missing_ok=True)
            self._file.close()
            self._file = None


def _take(file: FileLock, session: str) -> bool:
    """Lock the file and write into it who has it; ``False`` if its holder removed it between opening and locking it."""
    if not file.try_acquire():
        raise SessionLocked(session, _holder(file.descriptor))
    try:
        found = file.path.lstat()
    except FileNotFoundError:
        return False
    if not os.path.samestat(os.fstat(file.descriptor), found):
        return False
    os.pwrite(file.descriptor, f"{os.getpid()}\n".ljust(16).encode("ascii"), 0)
    return True


def _holder(descriptor: int) -> int | None:
    try:
        process = int(os.pread(descriptor, 16, 0))
    except ValueError:
        return None
    return process if process != os.getpid() else None
