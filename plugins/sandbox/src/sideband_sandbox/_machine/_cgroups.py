"""Puts each worker into control groups of its own where the machine permits it, so that the kernel enforces its limits.

They are often unavailable, mostly to users other than root; resource limits and the host's watchdog still apply then.
All functions block on file system access, if only for fractions of a millisecond: call them in a thread.

Version 2 of the interface has one tree for all controllers, and a group that delegates controllers must not contain
processes. So a worker's group is a sibling of the host's own group, and the host is never moved. A sibling is not
subject to the limits of the host's group: if that group has limits, its workers stay in it and get no group of their
own. Version 1 has one tree for each controller and no such rule; there a worker's groups are children of the host's.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path

from attrs import field, frozen
from sideband.state import try_lock
from sideband.workers import WorkerLimits

_CONTROLLERS = ("memory", "pids")
_LIMITS_OF_VERSION_2 = ("memory.max", "memory.high", "pids.max", "cpu.max", "cpuset.cpus")
# The process ID in the name is for people only: it means nothing in another process namespace.
_NAME = re.compile(r"sideband-[0-9]+-[0-9a-f]+")
_ESCAPED = re.compile(r"\\([0-7]{3})")

# Removing a group fails with EBUSY for a moment after its last process was reaped.
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.002


@frozen
class _Setting:
    """One file of a group, and the value written to it.

    Args:
        file: the name of the file.
        value: computes the value from the limits.
        optional: whether the file may be missing.
    """

    file: str
    value: Callable[[WorkerLimits], int]
    optional: bool = False


@frozen
class _CgroupParent:
    """A group in which child groups can be created.

    Args:
        folder: the folder of the group.
        settings: the settings of its child groups, in the order in which the kernel accepts them.
    """

    folder: Path
    settings: tuple[_Setting, ...]


_VERSION_2 = (
    _Setting("memory.max", lambda limits: limits.memory),
    _Setting("memory.swap.max", lambda _: 0, optional=True),
    _Setting("pids.max", lambda limits: limits.threads),
)
_VERSION_1 = {
    "memory": (
        _Setting("memory.limit_in_bytes", lambda limits: limits.memory),
        # Memory and swap together: the same value as above, so no swap.
        _Setting("memory.memsw.limit_in_bytes", lambda limits: limits.memory, optional=True),
    ),
    "pids": (_Setting("pids.max", lambda limits: limits.threads),),
}


@frozen
class WorkerCgroup:
    """The groups of one worker. The caller must close it after the worker has exited.

    Args:
        folders: one folder with version 2, one for each controller with version 1.
    """

    folders: tuple[Path, ...]
    _locks: list[int] = field(factory=list, repr=False)

    def was_out_of_memory(self) -> bool:
        """Return whether the kernel killed the worker for exceeding its own memory limit.

        Call it after the worker has exited and before ``close``.
        """
        # A process killed because the whole machine ran out of memory counts too, but its group was below its limit.
        for folder in self.folders:
            events = _numbers(folder / "memory.events")
            if events.get("oom") and events.get("oom_kill"):
                return True
            killed = _numbers(folder / "memory.oom_control").get("oom_kill")
            if killed and _number(folder / "memory.max_usage_in_bytes") >= _number(folder / "memory.limit_in_bytes"):
                return True
        return False

    def close(self) -> None:
        """Remove the groups. May be called more than once.

        Blocks up to a tenth of a second per group while the kernel still counts a process in it. A group that remains
        busy is left for the next host to remove.
        """
        for folder in self.folders:
            for _ in range(_ATTEMPTS):
                if _remove(folder):
                    break
                time.sleep(_PAUSE_SECONDS)
        while self._locks:
            os.close(self._locks.pop())


@frozen
class Cgroups:
    """The groups in which groups for workers can be created. Created by ``find_cgroups``.

    Args:
        version: the version of the kernel's interface.
        parents: one parent with version 2, one for each controller with version 1.
    """

    version: int
    parents: tuple[_CgroupParent, ...] = field(repr=False)

    def confine(self, pid: int, limits: WorkerLimits) -> WorkerCgroup:
        """Create groups with these limits, and move a process with all its threads into them.

        Memory that the process already uses stays charged to its previous group. So call this before a worker reads
        its first message.

        Args:
            pid: the process ID, as the host sees it.
            limits: the limits; groups enforce only memory and threads.

        Raises:
            OSError: if the kernel refuses, or the process has exited. No group is left behind.
        """
        made: list[Path] = []
        locks: list[int] = []
        try:
            for parent in self.parents:
                folder, lock = _create(parent.folder)
                made.append(folder)
                locks.append(lock)
                for setting in parent.settings:
                    if not setting.optional or (folder / setting.file).exists():
                        _write(folder / setting.file, setting.value(limits))
                _write(folder / "cgroup.procs", pid)
        except OSError:
            for folder, lock in zip(made, locks, strict=True):
                _remove(folder)
                os.close(lock)
            raise
        return WorkerCgroup(tuple(made), locks)


def _create(parent: Path) -> tuple[Path, int]:
    """Create a group. Return its folder, and a descriptor that holds a lock on it, so that other hosts keep it."""
    while True:
        folder = parent / f"sideband-{os.getpid()}-{secrets.token_hex(8)}"
        folder.mkdir()
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            if try_lock(descriptor) and folder.exists():
                return folder, descriptor
            # Another host has removed it before it was locked.
            os.close(descriptor)


def find_cgroups(process: Path = Path("/proc/self")) -> Cgroups | None:
    """Return where this host can create groups for its workers, or ``None`` if it cannot.

    Verified with an idle child process: a group is created, the child is moved into it and found there, and the group
    is removed. Then groups left behind by hosts that have exited are removed.

    Args:
        process: the folder in ``/proc`` of the process whose groups are used.
    """
    for found in _candidates(process):
        if _holds(found):
            _sweep(found)
            return found
    return None


def _candidates(process: Path) -> Iterator[Cgroups]:
    """Yield the possible parents, version 2 first: on a machine with both, each controller is in one of them only."""
    try:
        mounts = [_Mount.parse(line) for line in _lines(process / "mountinfo")]
        own = dict(_memberships(_lines(process / "cgroup")))
    except (OSError, ValueError):
        return
    unified = [(_own_folder(mount, own), Path(mount.point)) for mount in mounts if mount.kind == "cgroup2"]
    for folder in [parent for group, root in unified if group for parent in _parents_near(group, root)]:
        if set(_CONTROLLERS) <= set(_words(folder / "cgroup.subtree_control")):
            yield Cgroups(2, (_CgroupParent(folder, _VERSION_2),))
    trees = {
        name: tree
        for mount, name in product(mounts, _CONTROLLERS)
        if mount.kind == "cgroup" and name in mount.options and (tree := _own_folder(mount, own, name))
    }
    if set(trees) == set(_CONTROLLERS):
        yield Cgroups(1, tuple(_version_1_parents(trees)))


def _version_1_parents(trees: Mapping[str, Path]) -> Iterator[_CgroupParent]:
    """Yield the parent in each tree; controllers may share a tree."""
    for folder in dict.fromkeys(trees.values()):
        settings = [setting for name in trees if trees[name] == folder for setting in _VERSION_1[name]]
        yield _CgroupParent(folder, tuple(settings))


def _parents_near(own: Path, root: Path) -> Iterator[Path]:
    """Yield this process's group, in case it is the root group, which may contain processes, and then its parent.

    The parent is left out if this process's group has limits.
    """
    yield own
    if own != root and all(_words(own / file)[:1] in ([], ["max"]) for file in _LIMITS_OF_VERSION_2):
        yield own.parent


@frozen
class _Mount:
    """One line of ``mountinfo``.

    Args:
        root: the folder of the file system that is mounted.
        point: the mount point.
        kind: the type of the file system.
        options: the options of the file system; with version 1 they include its controllers.
    """

    root: str
    point: str
    kind: str
    options: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> _Mount:
        """Parse a line. Raises ``ValueError`` if it is malformed."""
        words, _, rest = line.partition(" - ")
        _, _, _, root, point, *_ = words.split(" ")
        kind, _, options = rest.split(" ")
        return cls(_unescape(root), _unescape(point), kind, tuple(options.split(",")))


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def _memberships(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each controller and its group; the name of version 2's is empty."""
    for line in lines:
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            yield name, path


def _own_folder(mount: _Mount, own: dict[str, str], controller: str = "") -> Path | None:
    """Return the folder of the process's own group, or ``None`` if this mount does not contain it."""
    path = own.get(controller)
    if path is None or ".." in Path(path).parts or not Path(path).is_relative_to(mount.root):
        return None
    return Path(mount.point) / Path(path).relative_to(mount.root)


def _holds(found: Cgroups) -> bool:
    limits = WorkerLimits()
    command = [sys.executable, "-I", "-S", "-c", "input()"]
    try:
        with subprocess.Popen(  # noqa: S603  the command is fixed
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={}, cwd="/"
        ) as child:
            try:
                groups = found.confine(child.pid, limits)
                held = all(_is_held(folder, child.pid) for folder in groups.folders)
            finally:
                child.kill()
    except OSError:
        return False
    groups.close()
    return held and not any(folder.exists() for folder in groups.folders)


def _is_held(folder: Path, pid: int) -> bool:
    return str(pid) in _words(folder / "cgroup.procs")


def _sweep(found: Cgroups) -> None:
    """Remove the groups of hosts that have exited: those without a lock.

    The kernel refuses to remove a group that contains a process.
    """
    for parent in found.parents:
        for folder in parent.folder.glob("sideband-*"):
            if _NAME.fullmatch(folder.name):
                _remove_unlocked(folder)


def _remove_unlocked(folder: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if try_lock(descriptor):
                _remove(folder)
        finally:
            os.close(descriptor)


def _remove(folder: Path) -> bool:
    """Remove a group. Return whether it is gone."""
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _write(file: Path, value: int) -> None:
    file.write_text(str(value), encoding="ascii")


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except OSError:
        return []


def _numbers(file: Path) -> dict[str, int]:
    """Parse a file of lines with a name and a number."""
    words = _words(file)
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=False)}


def _number(file: Path) -> int:
    return int(next(iter(_words(file)), "0"))
