"""The lock of a session, held by its writer and released when the process ends."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import anyio
from attrs import define
from sideband.errors import StateUnwritable, StoreError
from sideband.state import FileLock, make_home
from sideband.store import SharedStore, Store

from ._errors import SessionLocked

_LENGTH = 32
_RELEASE_SECONDS = 5.0
_OWN_NAMESPACE = Path("/proc/self/ns/pid")


@define
class SessionLock:
    """A lock between processes and between the agents of one process, and between machines if the store is shared.

    Without a shared store it is a file, which names the process that holds it, for messages, and exists only while it
    is held.
    """

    _held: FileLock | SharedStore | None
    _name: str = ""

    @classmethod
    async def take(cls, store: Store, folder: Path, session: str) -> SessionLock:
        """Acquire the lock of a session.

        Args:
            store: the store of the session, which has the lock if it is shared.
            folder: the folder of the locks that are files.
            session: the id of the session.

        Raises:
            SessionLocked: if another writer holds it.
            StateUnwritable: if the folder cannot be written.
            StoreError: if the shared store cannot be used.
        """
        if not isinstance(store, SharedStore):
            return cls(_take_file(folder, session))
        name = f"session/{session}"
        if not await store.try_lock(name):
            raise SessionLocked(session)
        return cls(store, name)

    async def release(self) -> None:
        """Release the lock, also if the task is cancelled."""
        held, self._held = self._held, None
        if isinstance(held, FileLock):
            # unlink while still held: another process that has opened the file sees that it is gone and makes a new one
            held.path.unlink(missing_ok=True)
            held.close()
        elif held is not None:
            # If this fails, the lock is released when the store is closed.
            with suppress(StoreError), anyio.move_on_after(_RELEASE_SECONDS, shield=True):
                await held.unlock(self._name)


def _take_file(folder: Path, session: str) -> FileLock:
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
    return file


def _take(file: FileLock, session: str) -> bool:
    """Lock the file and write the process id into it. Return ``False`` if its holder removed it meanwhile."""
    if not file.try_acquire():
        raise SessionLocked(session, _holder(file.descriptor))
    try:
        found = file.path.lstat()
    except FileNotFoundError:
        return False
    if not os.path.samestat(os.fstat(file.descriptor), found):
        return False
    os.pwrite(file.descriptor, f"{os.getpid()} {_process_namespace()}\n".ljust(_LENGTH).encode("ascii"), 0)
    return True


def _holder(descriptor: int) -> int | None:
    """Return the id of the other process that holds a lock, or ``None`` if it has no id here."""
    try:
        process, namespace = map(int, os.pread(descriptor, _LENGTH, 0).split())
    except ValueError:
        return None
    return process if process != os.getpid() and namespace == _process_namespace() else None


def _process_namespace() -> int:
    """Return a number for the process namespace, 0 on systems without them: in each, ids have another meaning."""
    with suppress(OSError):
        return _OWN_NAMESPACE.stat().st_ino
    return 0
