"""Files that belong to one user: checked before they are read, replaced whole, locked across processes."""

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
    """Make sure that the folder is there and that nobody else can put files into it.

    Raises:
        SecretsExposed: others can write to it.
        SecretsStorage: it can't be made.
    """
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # a store that is durable in a folder that is not would be gone with it
            sync_folder(folder.parent)
        found = folder.stat()
    except OSError as error:
        raise _storage(folder, error) from error
    if not stat.S_ISDIR(found.st_mode):
        raise SecretsExposed(folder, "is no folder", hint="move it away; a new one is made")
    if found.st_uid != os.geteuid():
        raise SecretsExposed(folder, "belongs to another user", hint="move it away; a new one is made")
    if found.st_mode & 0o022:
        raise SecretsExposed(folder, "can be written to by others", hint=f"chmod 700 {folder}")
    return folder


def read_private(path: Path, *, max_bytes: int) -> bytes | None:
    """The content of a file that only its owner can read, or ``None`` if there is none.

    Raises:
        SecretsExposed: others could have read it, or it is no plain file of this user.
        SecretsStorage: it can't be read, or is longer than ``max_bytes``.
    """
    try:
        # without waiting for a writer, if somebody put a pipe there
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
        raise  # which is an OSError too
    except OSError as error:
        raise _storage(path, error) from error
    finally:
        os.close(descriptor)
    if len(content) > max_bytes:
        raise SecretsStorage(path, f"it is longer than {max_bytes:,} bytes")
    return content


def _check_owned(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise SecretsExposed(path, "is no file of yours", hint="move it away")
    if found.st_mode & 0o077:
        raise SecretsExposed(path, "can be read or written by others", hint=f"chmod 600 {path}")


def create_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read; never over an existing one.

    Raises:
        SecretsStorage: it exists, or can't be written.
    """
    _replace(path, content, overwrite=False)


def replace_private(path: Path, content: bytes) -> None:
    """Put a file that only its owner can read in the place of ``path``, durably; or leave what was there.

    Raises:
        SecretsStorage: it can't be written.
    """
    _replace(path, content, overwrite=True)


def remove_left_overs(path: Path) -> None:
    """Remove what writers of ``path`` left that were killed. Nobody else may be writing it."""
    try:
        remove_partial_files(path)
    except OSError as error:
        raise _storage(path, error) from error


def move_private(path: Path, to: Path) -> None:
    """Put a file in the place of another one, durably."""
    _change(path, path.parent, lambda: path.replace(to))


def remove_private(path: Path) -> None:
    """Remove a file that may be there, durably."""
    _change(path, path.parent, lambda: path.unlink(missing_ok=True))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file; nobody else in this or another process does meanwhile.

    Raises:
        SecretsLocked: somebody else held it for too long.
    """
    with FileLock(path) as lock:
        try:
            taken = lock.acquire(_SECONDS_FOR_LOCK)
        except OSError as error:
            raise _storage(path, error) from error
        if not taken:
            raise SecretsLocked("the store of secrets", hint="another process holds it; try again")
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
