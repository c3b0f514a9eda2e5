"""The content of an environment: made harmless and readable for workers, and recorded."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import Factory, frozen
from packaging.utils import canonicalize_name

from ._errors import EnvironmentFailed

__all__ = ["Environment", "read_environment", "seal"]

_RECORD = "sideband-environment.json"
_READABLE = 0o444


@frozen
class Environment:
    """The packages that are installed for the skills that depend on them.

    Args:
        path: the folder that holds them.
        requirements: what was asked for.
        packages: the version of each package that is there, by its name.
    """

    path: Path
    requirements: tuple[str, ...] = ()
    packages: Mapping[str, str] = Factory(dict)


def seal(folder: Path, requirements: tuple[str, ...]) -> None:
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
    record = {"requirements": list(requirements), "packages": dict(sorted(_packages(folder)))}
    (folder / _RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
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


def read_environment(path: Path) -> Environment:
    """What is in an environment, as recorded when it was made."""
    try:
        record = json.loads((path / _RECORD).read_text(encoding="utf-8"))
        return Environment(path, tuple(record["requirements"]), dict(record["packages"]))
    except (OSError, ValueError, KeyError, TypeError):
        # somebody else made the folder; what is in it can still be used
        return Environment(path)
