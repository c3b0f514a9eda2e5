"""Puts each worker into control groups of its own, where the machine lets us: the kernel then holds its limits itself.

That they can't be had is normal, above all for who is not root; the limits of the process and the host's watchdog
remain. All of it is files, so everything here blocks, if only for fractions of a millisecond: call it in a thread.

Version 2 of the interface has one tree for all controllers, and a group that hands controllers on to others has no
processes of its own. So a worker's group is made beside the host's own, and the host is never moved. A group beside the
host's is not bound by the limits of the host's: where that has any, a worker has to stay in it, and gets no other.
Version 1 has one tree for each controller and no such rule; there a worker's groups are made below the host's own.
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
from sideband.workers import WorkerLimits

_CONTROLLERS = ("memory", "pids")
_LIMITS_OF_VERSION_2 = ("memory.max", "memory.high", "pids.max", "cpu.max", "cpuset.cpus")
_NAME = re.compile(r"sideband-([0-9]+)-[0-9a-f]+")
_ESCAPED = re.compile(r"\\([0-7]{3})")

# A group stays busy for a moment after its last process was reaped.
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.002


@frozen
class _Setting:
    """One file of a group, and what is written to it.

    Args:
        file: its name.
        value: what the limits make of it.
        optional: kernels without it are good too.
    """

    file: str
    value: Callable[[WorkerLimits], int]
    optional: bool = False


@frozen
class _CgroupParent:
    """A folder in which groups can be made.

    Args:
        folder: a group itself.
        settings: those of the groups in it, in the order in which the kernel takes them.
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
        # Memory and swap together: what the first allows, and nothing more.
        _Setting("memory.memsw.limit_in_bytes", lambda limits: limits.memory, optional=True),
    ),
    "pids": (_Setting("pids.max", lambda limits: limits.threads),),
}


@frozen
class WorkerCgroup:
    """The groups of one worker. Whoever had it made closes it, after the worker has ended.

    Args:
        folders: one with version 2, one for each controller with version 1.
    """

    folders: tuple[Path, ...]

    def was_out_of_memory(self) -> bool:
        """Whether the kernel ended the worker because it wanted more memory than its limit; not if the machine's ended.

        Ask when the worker has ended, and before ``close``.
        """
        # A process that the machine's own want of memory ended is counted too; but its group was not at its limit.
        for folder in self.folders:
            events = _numbers(folder / "memory.events")
            if events.get("oom") and events.get("oom_kill"):
                return True
            killed = _numbers(folder / "memory.oom_control").get("oom_kill")
            if killed and _number(folder / "memory.max_usage_in_bytes") >= _number(folder / "memory.limit_in_bytes"):
                return True
        return False

    def close(self) -> None:
        """Remove the groups. Can be called again.

        Blocks up to a tenth of a second for each while the kernel still counts a process in it; what stays busy is
        left to the next host.
        """
        for folder in self.folders:
            for _ in range(_ATTEMPTS):
                if _remove(folder):
                    break
                time.sleep(_PAUSE_SECONDS)


@frozen
class Cgroups:
    """Where groups for workers can be made. Comes from ``find_cgroups``.

    Args:
        version: of the kernel's interface.
        parents: one with version 2, one for each controller with version 1.
    """

    version: int
    parents: tuple[_CgroupParent, ...] = field(repr=False)

    def confine(self, pid: int, limits: WorkerLimits) -> WorkerCgroup:
        """Make groups with these limits, and move a process into them.

        What the process has in memory already stays on the account of the group that it comes from. So this is done
        before a worker reads its first message.

        Args:
            pid: the process, as the host sees it, with all of its threads.
            limits: memory and threads are held; the others are no matter of groups.

        Raises:
            OSError: the kernel refused, or the process has ended. No group is left behind.
        """
        name = f"sideband-{os.getpid()}-{secrets.token_hex(8)}"
        made: list[Path] = []
        try:
            for parent in self.parents:
                folder = parent.folder / name
                folder.mkdir()
                made.append(folder)
                for setting in parent.settings:
                    if not setting.optional or (folder / setting.file).exists():
                        _write(folder / setting.file, setting.value(limits))
                _write(folder / "cgroup.procs", pid)
        except OSError:
            for folder in made:
                _remove(folder)
            raise
        return WorkerCgroup(tuple(made))


def find_cgroups(process: Path = Path("/proc/self")) -> Cgroups | None:
    """Where this host can make groups for its workers; ``None`` where it can't.

    It is tried, with a child that does nothing: made, moved in, seen in it by the kernel, and removed. Afterwards what
    hosts left behind that have ended is removed.

    Args:
        process: the folder in ``/proc`` of the process whose groups count.
    """
    for found in _candidates(process):
        if _holds(found):
            _sweep(found)
            return found
    return None


def _candidates(process: Path) -> Iterator[Cgroups]:
    """Version 2 first: where a machine has both, its controllers are in one of them only."""
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
    """One for each tree; controllers may share one."""
    for folder in dict.fromkeys(trees.values()):
        settings = [setting for name in trees if trees[name] == folder for setting in _VERSION_1[name]]
        yield _CgroupParent(folder, tuple(settings))


def _parents_near(own: Path, root: Path) -> Iterator[Path]:
    """The root of all groups is the only one that may have processes and hand on controllers."""
    yield own
    if own != root and all(_words(own / file)[:1] in ([], ["max"]) for file in _LIMITS_OF_VERSION_2):
        yield own.parent


@frozen
class _Mount:
    """One line of ``mountinfo``.

    Args:
        root: which folder of the file system is mounted.
        point: where.
        kind: of file system.
        options: those of the file system; with version 1, its controllers are among them.
    """

    root: str
    point: str
    kind: str
    options: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> _Mount:
        """Raises ``ValueError`` if it is no such line."""
        words, _, rest = line.partition(" - ")
        _, _, _, root, point, *_ = words.split(" ")
        kind, _, options = rest.split(" ")
        return cls(_unescape(root), _unescape(point), kind, tuple(options.split(",")))


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def _memberships(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The group of each controller; that of version 2 goes by the empty name."""
    for line in lines:
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            yield name, path


def _own_folder(mount: _Mount, own: dict[str, str], controller: str = "") -> Path | None:
    """The folder of the process' own group, if this mount shows it."""
    path = own.get(controller)
    if path is None or ".." in Path(path).parts or not Path(path).is_relative_to(mount.root):
        return None
    return Path(mount.point) / Path(path).relative_to(mount.root)


def _holds(found: Cgroups) -> bool:
    limits = WorkerLimits()
    command = [sys.executable, "-I", "-S", "-c", "input()"]
    try:
        with subprocess.Popen(  # noqa: S603  the command is ours
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
    """Remove the groups of hosts that have ended. One in which a process lives can't be removed, and stays."""
    for parent in found.parents:
        for folder in parent.folder.glob("sideband-*"):
            name = _NAME.fullmatch(folder.name)
            if name is not None and not _runs(int(name[1])):
                _remove(folder)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _remove(folder: Path) -> bool:
    """Whether the group is gone."""
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
    """A file of lines with a name and a number."""
    words = _words(file)
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=False)}


def _number(file: Path) -> int:
    return int(next(iter(_words(file)), "0"))
