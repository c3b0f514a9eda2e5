"""Turns decisions about one worker into the plan that its lock-down carries out."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from sideband.workers import WorkerLimits

from ._landlock import READ_DIRECTORY, READ_FILE, Landlock
from ._paths import ReadablePath
from ._policy import worker_filter
from ._tables import Architecture

__all__ = ["Machine", "Plan", "Variant", "confined_plan", "open_to_everyone", "unconfined_plan"]

Plan = dict[str, Any]

# Paths that programs use for libraries; often links.
_LIBRARY_LINKS = ("/lib", "/lib32", "/lib64", "/usr/lib64", "/usr/lib32")


@frozen
class Machine:
    """What this kernel and processor offer.

    Args:
        architecture: numbers of system calls.
        landlock: what can be restricted.
    """

    architecture: Architecture
    landlock: Landlock


@frozen
class Variant:
    """One way to lock a worker down.

    Args:
        namespaces: its own mounts, processes, network, ipc and names.
        user_namespace: its own user namespace. With ``namespaces`` that of an ordinary user.
        own_user: a user id that nothing else has; needs root.
    """

    namespaces: bool = False
    user_namespace: bool = False
    own_user: bool = False

    def without_own_user(self) -> Variant:
        """The same, keeping the host's user id."""
        return evolve(self, own_user=False)


def confined_plan(
    machine: Machine,
    variant: Variant,
    paths: Iterable[ReadablePath],
    *,
    limits: WorkerLimits,
    links: Iterable[Path],
    staging: Path,
    uid: int,
) -> Plan:
    """The steps of the lock-down, in the only order in which they hold.

    It looks at the file system, so async code runs it in a thread.

    Args:
        machine: what can be used.
        variant: what shall be used.
        paths: all that the worker may read.
        limits: hard limits.
        links: paths as they will be used; links on the way are made again where the worker has its own root.
        staging: any folder that exists.
        uid: the user id, if the variant has its own.
    """
    readable = tuple(paths)
    steps: list[list[Any]] = [["descriptors", {}], ["single_thread", {}]]
    if variant.namespaces:
        root = _root(readable, links, staging, machine)
        steps.append(["namespaces", {"host": os.getpid(), "with_user": variant.user_namespace, "root": root}])
    elif variant.user_namespace:
        steps.append(["user_namespace", {}])
    steps.append(["limits", {"memory": limits.address_space, "threads": limits.threads, "files": limits.files}])
    steps.append(["bounding_set", {}])
    if variant.own_user:
        steps.append(["identity", {"uid": uid}])
    steps += [
        ["parent", {"pid": os.getpid()}],
        ["capabilities", {}],
        ["no_new_privileges", {}],
        ["landlock", _landlock_arguments(machine.landlock, readable)],
        ["seccomp", _seccomp_arguments(machine.architecture)],
    ]
    return {"steps": steps}


def unconfined_plan(limits: WorkerLimits) -> Plan:
    """What can be done anywhere: no walls, but nothing inherited, limits, and an end with the host."""
    return {
        "steps": [
            ["descriptors", {}],
            ["limits", {"memory": limits.address_space, "threads": limits.threads, "files": limits.files}],
            ["parent", {"pid": os.getpid()}],
            ["no_new_privileges", {}],
        ]
    }


def open_to_everyone(folders: Iterable[Path], *, parents: bool) -> bool:
    """Whether a user who owns nothing can read these folders and all that is in them.

    Args:
        folders: each is looked through.
        parents: whether the folders above them have to let him through too.
    """
    for folder in folders:
        real = folder.resolve()
        if parents and not all(_mode(parent) & stat.S_IXOTH for parent in real.parents):
            return False
        if not _tree_is_open(real):
            return False
    return True


def _tree_is_open(folder: Path) -> bool:
    needed = stat.S_IROTH | stat.S_IXOTH
    for current, _, files in os.walk(folder):
        if _mode(Path(current)) & needed != needed:
            return False
        if any(not _mode(Path(current, name)) & stat.S_IROTH for name in files):
            return False
    return True


def _mode(path: Path) -> int:
    return path.lstat().st_mode


def _landlock_arguments(landlock: Landlock, paths: Iterable[ReadablePath]) -> dict[str, Any]:
    rules: list[list[Any]] = []
    for path in paths:
        folder = Path(path.folder)
        if not path.names:
            rules.append([READ_FILE | READ_DIRECTORY, path.folder, []])
            continue
        folders = [name for name in path.names if (folder / name).is_dir()]
        files = [name for name in path.names if (folder / name).is_file()]
        rules += [[READ_FILE | READ_DIRECTORY, path.folder, folders]] if folders else []
        rules += [[READ_FILE, path.folder, files]] if files else []
        rules += [[READ_DIRECTORY, path.folder, []]] if path.listing else []
    return {"files": landlock.files, "network": landlock.network, "scopes": landlock.scopes, "rules": rules}


def _seccomp_arguments(architecture: Architecture) -> dict[str, Any]:
    program = worker_filter(architecture)
    return {"code": base64.b64encode(program.code).decode("ascii"), "own_pid_at": list(program.own_pid_at)}


def _root(paths: Iterable[ReadablePath], links: Iterable[Path], staging: Path, machine: Machine) -> dict[str, Any]:
    """The worker's own file system. Coarser than Landlock's rules, which hold in it as well."""
    mounts: dict[str, bool] = {}
    hidden: list[str] = []
    for path in paths:
        if path.listing or path.libraries or not path.names:
            mounts[path.folder] = True
        else:
            mounts.update({f"{path.folder}/{name}": Path(path.folder, name).is_dir() for name in path.names})
        hidden += [f"{path.folder}/{name}" for name in path.hidden]
    outermost = {path: mounts[path] for path in mounts if not any(str(up) in mounts for up in Path(path).parents)}
    ways = [*(Path(path) for path in _LIBRARY_LINKS), *links]
    return {
        "staging": str(staging.resolve()),
        "links": [[path, target] for path, target in sorted(_links_on(ways).items())],
        "mounts": [[path, is_folder] for path, is_folder in sorted(outermost.items())],
        "hidden": sorted(hidden),
        "pivot_root": machine.architecture.pivot_root,
    }


def _links_on(ways: Iterable[Path]) -> dict[str, str]:
    """The symbolic links that are met on the way to each of these paths."""
    links: dict[str, str] = {}
    for way in ways:
        current = Path("/")
        for part in Path(os.path.abspath(way)).parts[1:]:  # noqa: PTH100 - resolve() would follow the links
            following = current / part
            if following.is_symlink():
                links[str(following)] = os.fspath(following.resolve())
            current = following.resolve()
    return links
