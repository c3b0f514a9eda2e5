"""Turn a folder of installed packages into an environment that workers can use."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name
from sideband.environments import Environment

from ._errors import EnvironmentFailed

_READABLE = 0o444


def harden(folder: Path, requirements: tuple[str, ...]) -> None:
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
    for path in _files(folder):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            os.fchmod(descriptor, _READABLE)
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
