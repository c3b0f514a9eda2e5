"""Opening what is below a folder. No step follows a link, so nothing that is swapped meanwhile leads out."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

# a folder may be passed through without the right to list it
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_beneath(
    folder: int | Path,
    names: Iterable[str],
    flags: int = os.O_RDONLY,
    *,
    create_folders: bool = False,
    check: Callable[[int], None] | None = None,
) -> int:
    """Open what is so many steps below a folder, and return its descriptor, which the caller closes.

    Args:
        folder: where to begin: a descriptor, or a path that must not be a link itself.
        names: the names of the folders on the way and of what is opened; without any, it is the folder itself.
        flags: how it is opened, besides never through a link and never waiting for the other end of a pipe.
        create_folders: make the folders that are missing on the way, for their owner only.
        check: called with a descriptor of each folder on the way, the first one included; it refuses by raising.

    Raises:
        PermissionError: a name leads elsewhere.
        OSError: there is a link on the way (``ELOOP`` or ``ENOTDIR``), or the system refuses.
    """
    *way, last = [_checked(name) for name in names] or ["."]
    current = os.dup(folder) if isinstance(folder, int) else os.open(folder, _STEP)
    try:
        if check is not None:
            check(current)
        for name in way:
            following = _step(current, name, create=create_folders)
            os.close(current)
            current = following
            if check is not None:
                check(current)
        return os.open(last, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode=0o600, dir_fd=current)
    finally:
        os.close(current)


def _checked(name: str) -> str:
    if "/" in name or name == "..":
        raise PermissionError(errno.EACCES, "it leads out of its folder")
    return name


def _step(current: int, name: str, *, create: bool) -> int:
    try:
        return os.open(name, _STEP, dir_fd=current)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, mode=0o700, dir_fd=current)
    return os.open(name, _STEP, dir_fd=current)
