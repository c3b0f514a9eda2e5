"""Makes a filled folder an environment: harmless and readable for workers, and recorded."""

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
    """Make a freshly filled folder one that workers can use, and that nothing changes any more.

    Programs, and files that would change the path of an interpreter, are removed: in a worker nothing starts the ones,
    and nothing reads the others. Files become readable for everybody and writable for nobody, and are on disk after it.

    Raises:
        EnvironmentFailed: there is something in it that is neither a file nor a folder.
        OSError: it can't be written.
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
    """Name and version of each package, from the names of the folders that describe them."""
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
