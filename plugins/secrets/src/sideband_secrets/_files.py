"""Private files: permissions are checked before reading, replacement is atomic, and a lock serializes processes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sideband.state import FileLock, remove_partial_files, replace_file, sync_folder

from ._errors import SecretsExposed, SecretsLocked, SecretsStorage

_SECONDS_FOR_LOCK = 10.0
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


def private_folder(folder: Path) -> Path:
    """Create the folder if needed, and check that other users cannot write to it.

    Raises:
        SecretsExposed: if other users can write to it.
        SecretsStorage: if it cannot be created.
    """
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # otherwise a crash could remove the folder together with a store that is already durable
            sync_folder(folder.parent)
        found = folder.stat()
    except OSError as error:
        raise _storage(folder, error) from error
    if not stat.S_ISDIR(found.st_mode):
        raise SecretsExposed(folder, "is not a folder", hint="move it away; a new one is created")
    if found.st_uid != os.geteuid():
        raise SecretsExposed(folder, "belongs to another user", hint="move it away; a new one is created")
    if found.st_mode & 0o022:
        raise SecretsExposed(folder, "is writable by other users", hint=f"run `chmod 700 {folder}`")
    return folder


def read_private(path: Path, *, max_bytes: int) -> bytes | None:
    """Return the content of a private file, or ``None`` if it does not exist.

    Raises:
        SecretsExposed: if other users can read it, or it is not a regular file of this user.
        SecretsStorage: if it cannot be read, or exceeds ``max_bytes``.
    """
    try:
        # O_NONBLOCK: opening a pipe would block
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _storage(path, error) from error
    try:
        _check_owned(path, os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(max_bytes + 1)
    except SecretsExposed:
        raise  # it is also an OSError
    except OSError as error:
        raise _storage(path, error) from error
    finally:
        os.close(descriptor)
    if len(content) > max_bytes:
        raise SecretsStorage(path, f"file exceeds {max_bytes:,} bytes")
    return content


def _check_owned(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise SecretsExposed(path, "is not a regular file of this user", hint="move it away")
    if found.st_mode & 0o077:
        raise SecretsExposed(path, "is accessible by other users", hint=f"run `chmod 600 {path}`")


def create_private(path: Path, content: bytes) -> None:
    """Write a new private file. Never replace an existing one.

    Raises:
        SecretsStorage: if the file exists, or cannot be written.
    """
    _replace(path, content, overwrite=False)


def replace_private(path: Path, content: bytes) -> None:
    """Replace a private file atomically and durably.

    Raises:
        SecretsStorage: if it cannot be written; the old file is unchanged.
    """
    _replace(path, content, overwrite=True)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of writers of ``path`` that were killed. The caller must hold the lock."""
    try:
        remove_partial_files(path)
    except OSError as error:
        raise _storage(path, error) from error


def move_private(path: Path, to: Path) -> None:
    """Rename a file over another one, durably."""
    _change(path, path.parent, lambda: path.replace(to))


def remove_private(path: Path) -> None:
    """Remove a file if it exists, durably."""
    _change(path, path.parent, lambda: path.unlink(missing_ok=True))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file. It excludes other threads and processes.

    Raises:
        SecretsLocked: if it was not released in time.
    """
    with FileLock(path) as lock:
        try:
            taken = lock.acquire(_SECONDS_FOR_LOCK)
        except OSError as error:
            raise _storage(path, error) from error
        if not taken:
            raise SecretsLocked("the secrets store", hint="retry; another process holds the lock")
        yield


def _replace(path: Path, content: bytes, *, overwrite: bool) -> None:
    try:
        replace_file(path, content, overwrite=overwrite)
    except OSError as error:
        raise _storage(path, error) from error


def _change(path: Path, folder: Path, change: Callable[[], object]) -> None:
    try:
        change()
        sync_folder(folder)
    except OSError as error:
        raise _storage(path, error) from error


def _storage(path: Path, error: OSError) -> SecretsStorage:
    return SecretsStorage(path, error.strerror or type(error).__name__)
