"""Turn a folder of installed packages into an environment that workers can use."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from packaging.utils import canonicalize_name
from sideband.environments import Environment

from ._errors import EnvironmentFailed

_READABLE = 0o444
_EXECUTABLE = 0o555
_THREADS = 16


def harden(folder: Path, requirements: tuple[str, ...], *, keep_programs: bool = False) -> None:
    """Make the installed packages read-only, remove what workers must not use, and record the environment.

    Programs and ``.pth`` files, which would change an interpreter's path, are removed; workers use neither. Files
    become readable by all users and writable by none, and are flushed to disk.

    Raises:
        EnvironmentFailed: if the folder contains something other than files and folders.
        OSError: if the folder cannot be written.
    """
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for path in (folder / ".lock", *folder.glob("*.pth")):
        path.unlink(missing_ok=True)
    Environment(folder, requirements, dict(sorted(_packages(folder)))).record()
    make_read_only(folder, keep_programs=keep_programs)


def make_read_only(folder: Path, *, keep_programs: bool = False) -> None:
    """Make all files readable by all users and writable by none, and flush them to disk.

    Args:
        folder: the folder.
        keep_programs: whether files that can be executed stay so.

    Raises:
        EnvironmentFailed: if the folder contains something other than files and folders.
        OSError: if the folder cannot be written.
    """
    seal = partial(_seal, keep_program=keep_programs)
    # The file system writes what several threads ask for at once.
    with ThreadPoolExecutor(_THREADS) as threads:
        for _ in threads.map(seal, _files(folder)):
            pass


def _seal(path: Path, *, keep_program: bool) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        is_program = keep_program and os.fstat(descriptor).st_mode & stat.S_IXUSR
        os.fchmod(descriptor, _EXECUTABLE if is_program else _READABLE)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _packages(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and version of each package, from the names of its ``.dist-info`` folders."""
    for described in folder.glob("*-*.dist-info"):
        name, _, version = described.stem.partition("-")
        yield canonicalize_name(name), version


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                yield path
            elif not stat.S_ISDIR(mode):
                raise EnvironmentFailed.odd_file(str(path.relative_to(folder)))
