"""Open files below a folder without following links, so that a concurrent change cannot redirect the path outside."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

# O_PATH: traversing a folder does not require the permission to list it.
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_beneath(
    folder: int | Path,
    names: Iterable[str],
    flags: int = os.O_RDONLY,
    *,
    create_folders: bool = False,
    check: Callable[[int], None] | None = None,
) -> int:
    """Open a file or folder below a folder and return its descriptor. The caller must close it.

    Args:
        folder: the start: a descriptor, or a path that is not a link.
        names: the components of the path below ``folder``. If empty, ``folder`` itself is opened.
        flags: the flags for ``os.open``. ``O_NOFOLLOW``, ``O_NONBLOCK`` and ``O_CLOEXEC`` are always added.
        create_folders: whether to create missing intermediate folders, with access for their owner only.
        check: called with a descriptor of each folder on the path, including the first. It may raise to refuse.

    Raises:
        PermissionError: if a name is ``..`` or contains ``/``.
        OSError: if a component is a link (``ELOOP`` or ``ENOTDIR``), or if a system call failed.
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
        raise PermissionError(errno.EACCES, "path leads outside its folder")
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
