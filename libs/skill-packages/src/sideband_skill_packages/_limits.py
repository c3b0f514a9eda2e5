"""Limits on the size of packages, enforced while uv unpacks them. A small wheel can contain gigabytes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import define, field, frozen

from ._errors import EnvironmentFailed

MAX_BYTES = 4 * 1024**3
"""The default maximum of the unpacked size of all packages of an environment."""

MAX_FILES = 200_000
"""The maximum number of files of an environment."""

# A folder of wheels may be unpacked to this multiple of its size, or to the minimum.
_MAX_RATIO = 100
_MINIMUM = 32 * 1024**2
# uv unpacks each file, copies it, and compiles some.
_WRITES = 3
_INTERVAL = 0.02
_TEMPORARY = re.compile(r"\.tmp[A-Za-z0-9]{6}\Z")


@frozen
class PackageLimits:
    """The limits of one installation.

    Args:
        size: the maximum of the unpacked size in bytes.
        files: the maximum number of files.
    """

    size: int
    files: int = MAX_FILES

    @classmethod
    def of(cls, max_bytes: int, wheels: Path | None) -> PackageLimits:
        """Return the limits of an installation from an index, or from a folder of wheels."""
        if wheels is None:
            return cls(max_bytes)
        packed = sum(path.stat().st_size for path in wheels.glob("*") if path.is_file())
        return cls(min(max_bytes, max(_MINIMUM, _MAX_RATIO * packed)))

    def check(self, folder: Path, owner: str) -> None:
        """Check what was installed.

        Raises:
            EnvironmentFailed: if the folder has too many files or is too large.
        """
        size = count = 0
        for parent, folders, files in os.walk(folder):
            count += len(folders) + len(files)
            size += sum(os.lstat(os.path.join(parent, name)).st_size for name in files)  # noqa: PTH118  many files
            if count > self.files or size > self.size:
                raise EnvironmentFailed.too_large(owner, self.size, self.files)


@define
class _Watch:
    """Kills a process group that writes more than the limits allow.

    Attributes:
        exceeded: whether it was killed.
        leftovers: the temporary folders of uv's cache that it was writing to.
    """

    _process: int
    _limits: PackageLimits
    exceeded: bool = field(default=False, init=False)
    leftovers: set[Path] = field(factory=set, init=False)
    _ended: threading.Event = field(factory=threading.Event, init=False)

    def run(self) -> None:
        while not self._ended.is_set():
            if self._written() > _WRITES * self._limits.size + _MINIMUM:
                self.kill()
                return
            self._ended.wait(_INTERVAL)

    def end(self) -> None:
        self._ended.set()

    def kill(self) -> None:
        self.exceeded = True
        with suppress(OSError):
            os.killpg(self._process, signal.SIGSTOP)
            self.leftovers = set(_temporary_folders(self._process))
        with suppress(OSError):
            os.killpg(self._process, signal.SIGKILL)

    def _written(self) -> int:
        """Return the number of bytes that the process, and its children that have ended, have written."""
        try:
            fields = dict(line.split(": ") for line in Path(f"/proc/{self._process}/io").read_text().splitlines())
            return int(fields["wchar"])
        except (OSError, ValueError, KeyError):
            return 0


@contextmanager
def limited(process: int, limits: PackageLimits) -> Iterator[_Watch]:
    """Watch a process group during the block, and kill it if it writes too much.

    What was installed must be checked afterwards: where ``/proc`` does not exist, nothing is watched.
    """
    watch = _Watch(process, limits)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.end()
        thread.join()


def remove_leftovers(folders: set[Path]) -> None:
    """Remove what a killed uv has left in its cache."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _temporary_folders(process: int) -> Iterator[Path]:
    """Yield the temporary folders of uv's cache in which a process has open files."""
    for handle in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            path = handle.readlink()
            for folder in path.parents:
                if _TEMPORARY.match(folder.name) and any((one / "CACHEDIR.TAG").exists() for one in folder.parents):
                    yield folder
