"""What code may leave behind: tasks, threads, descriptors, processes and temporary files."""

from __future__ import annotations

import re
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import anyio
from attrs import frozen

from .._servers._exchange import SERVER_THREAD

_IDLE_THREADS = (
    "AnyIO worker thread",
    "Trio thread",
    "asyncio_",
    "MainThread",
    "Dummy-",
    "pytest_timeout",
    SERVER_THREAD,
)
_OWN_FILES = re.compile(r"/home-\d+/(ledger|store)/")
"""The files of the host itself, which it opens whenever it needs them."""
_SETTLING_SECONDS = 2.0


@frozen
class Leftovers:
    """What this process holds at one moment, and the files in folders that should be empty again."""

    found: Counter[str]

    def since(self, before: Leftovers) -> tuple[str, ...]:
        """Return what was not there before."""
        return tuple(sorted((self.found - before.found).elements()))


def held(folders: Iterable[Path] = (), *, tasks: bool = True) -> Leftovers:
    """Return what this process holds now.

    Args:
        folders: folders whose files count.
        tasks: whether to count tasks, for which an event loop must run.
    """
    found: Counter[str] = Counter()
    if tasks:
        found.update(f"the task `{one.name}`" for one in anyio.get_running_tasks())
    found.update(f"the thread `{one.name}`" for one in threading.enumerate() if not one.name.startswith(_IDLE_THREADS))
    found.update(f"the descriptor of {one}" for one in _descriptors())
    found.update(f"the process {one}" for one in _children())
    for folder in folders:
        found.update(f"the file {path.relative_to(folder)}" for path in folder.rglob("*") if not path.is_dir())
    return Leftovers(found)


async def left_since(before: Leftovers, folders: Iterable[Path] = ()) -> tuple[str, ...]:
    """Return what is held now and was not before, once the loop has had time to end what is ending."""
    folders = tuple(folders)
    left = held(folders).since(before)
    with anyio.move_on_after(_SETTLING_SECONDS):
        while left:
            await anyio.sleep(0.01)
            left = held(folders).since(before)
    return left


def _descriptors() -> list[str]:
    """Return the targets of the open descriptors. Those of the event loop and of shared caches have no name."""
    if sys.platform != "linux":
        return [one.name for one in Path("/dev/fd").iterdir()]
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the listing
            target = str(entry.readlink())
            found.append(target.partition(":")[0] if target.startswith(("socket:", "pipe:", "anon_inode:")) else target)
    return [one for one in found if not one.endswith("/fd") and _OWN_FILES.search(one) is None]


def _children() -> list[str]:
    """Return the names of the child processes. On other systems than Linux they are not counted."""
    found = []
    for listing in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for pid in listing.read_text().split():
                with suppress(OSError):
                    found.append(Path(f"/proc/{pid}/comm").read_text().strip())
    return found
