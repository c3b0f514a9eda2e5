"""The lock of a session: whoever writes it holds it, and it ends with the process, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from attrs import define, field
from sideband._files import make_home
from sideband.errors import StateUnwritable

from ._errors import SessionLocked

__all__ = ["SessionLock"]


@define
class SessionLock:
    """A lock between processes, and between the agents of one process.

    Its file says which process holds it, and is there only while it is held.
    """

    path: Path
    _descriptor: int | None = field(default=None, init=False)

    @classmethod
    def take(cls, folder: Path, session: str) -> SessionLock:
        """Lock the session with this id.

        Raises:
            SessionLocked: somebody has it.
            StateUnwritable: the folder can't be written.
        """
        lock = cls(folder / session)
        make_home(folder)
        while lock._descriptor is None:
            lock._try_to_take(session)
        return lock

    def release(self) -> None:
        """Give it back."""
        if self._descriptor is not None:
            # Still held: whoever has opened the file in the meantime sees that it is gone, and makes a new one.
            self.path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def _try_to_take(self, session: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise StateUnwritable(self.path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._is_at_path(descriptor):
                os.pwrite(descriptor, f"{os.getpid()}\n".ljust(16).encode("ascii"), 0)
                self._descriptor = descriptor
        except BlockingIOError:
            raise SessionLocked(session, _holder(descriptor)) from None
        except OSError as error:
            raise StateUnwritable(self.path, error) from error
        finally:
            if self._descriptor != descriptor:
                os.close(descriptor)

    def _is_at_path(self, descriptor: int) -> bool:
        """Whether the file was not removed, by who held it before, between opening and locking it."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.lstat())
        except FileNotFoundError:
            return False


def _holder(descriptor: int) -> int | None:
    try:
        process = int(os.pread(descriptor, 16, 0))
    except ValueError:
        return None
    return process if process != os.getpid() else None
