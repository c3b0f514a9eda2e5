"""Builds the plans that zygotes and workers carry out."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from sideband.workers import LaunchRequest, WorkerLimits

from .._inside import Plan
from .._machine._inspection import Machine
from .._machine._interpreter import Interpreter, ReadablePath, interpreter_paths
from .._machine._landlock import READ_DIRECTORY, READ_FILE, Landlock
from .._machine._tables import Architecture
from ._filter import worker_filter

# Library paths that programs use; often symbolic links.
_LIBRARY_LINKS = ("/lib", "/lib32", "/lib64", "/usr/lib64", "/usr/lib32")

# A zygote needs these capabilities to kill workers, and to change their user ID and capabilities.
_CAP_KILL, _CAP_SETGID, _CAP_SETUID, _CAP_SETPCAP = 5, 6, 7, 8
_CAPABILITIES_OF_ZYGOTE = 1 << _CAP_KILL | 1 << _CAP_SETGID | 1 << _CAP_SETUID | 1 << _CAP_SETPCAP


@frozen
class WorkerPlatform:
    """The machine, interpreter and folders that all workers use.

    Args:
        machine: the features of the machine.
        python: the interpreter.
        interpreter: the files and folders of that interpreter.
        folders: the folders that contain the snapshots, SDKs and packages of all workers.
    """

    machine: Machine
    python: Path
    interpreter: Interpreter
    folders: tuple[Path, ...] = ()


@frozen
class Variant:
    """One way to isolate workers.

    Args:
        namespaces: whether the zygote has its own mount, pid, network, ipc and uts namespaces.
        user_namespace: whether each worker has its own user namespace, and with ``namespaces`` the zygote too; for an
            ordinary user.
        own_user: whether each worker runs as an otherwise unused user; requires root.
    """

    namespaces: bool = False
    user_namespace: bool = False
    own_user: bool = False

    def without_own_user(self) -> Variant:
        """Return the same variant, with the host's user ID."""
        return evolve(self, own_user=False)


def zygote_plan(platform: WorkerPlatform, variant: Variant, stage: Path) -> Plan:
    """Return the plan of the zygote. Accesses the file system, so async code must call it in a thread.

    Args:
        platform: the machine, interpreter and folders.
        variant: the way to isolate workers.
        stage: an additional folder that contains files of its workers.
    """
    steps: list[list[Any]] = [["descriptors", {}], ["single_thread", {}]]
    if variant.namespaces:
        folders = [*platform.folders, stage]
        parents = [ReadablePath(str(folder.resolve())) for folder in folders]
        links = [*folders, *(Path(way) for way in platform.interpreter.ways)]
        root = _root([*interpreter_paths(platform.interpreter), *parents], links, stage, platform.machine)
        steps.append(["namespaces", {"host": os.getpid(), "with_user": variant.user_namespace, "root": root}])
    steps += [
        ["parent", {"pid": os.getpid()}],
        ["capabilities", {"kept": _CAPABILITIES_OF_ZYGOTE}],
        ["no_new_privileges", {}],
    ]
    return {"steps": steps}


def worker_plan(platform: WorkerPlatform, variant: Variant) -> Plan:
    """Return the plan of every worker. The order of the steps matters, because some need what later ones drop.

    The zygote adds its process ID to ``parent``; ``worker_orders`` returns the other arguments.

    Args:
        platform: the machine, interpreter and folders.
        variant: the way to isolate workers.
    """
    steps: list[list[Any]] = [["descriptors", {}], ["single_thread", {}]]
    if variant.user_namespace:
        steps.append(["user_namespace", {}])
    steps += [["limits", {}], ["bounding_set", {}]]
    if variant.own_user:
        steps.append(["identity", {}])
    steps += [
        ["parent", {}],
        ["capabilities", {}],
        ["no_new_privileges", {}],
        ["landlock", _landlock_arguments(platform.machine.landlock, interpreter_paths(platform.interpreter))],
        ["seccomp", _seccomp_arguments(platform.machine.architecture)],
    ]
    return {"steps": steps}


def worker_orders(variant: Variant, request: LaunchRequest, uid: int) -> dict[str, Any]:
    """Return the arguments that one worker adds to the steps of ``worker_plan``.

    Args:
        variant: the variant of the plan, or the same without its own user.
        request: the worker.
        uid: the worker's user ID, if the variant has its own user.
    """
    rights = READ_FILE | READ_DIRECTORY
    return {
        "limits": _limits(request.limits),
        "identity": {"uid": uid} if variant.own_user else None,
        "landlock": {"own": [[rights, str(folder.resolve()), []] for folder in own_folders(request)]},
    }


def own_folders(request: LaunchRequest) -> list[Path]:
    """Return the folders that this worker may read in addition to those of every worker."""
    return [folder for folder in (request.sdk, request.snapshot, request.packages) if folder is not None]


def unconfined_plan(limits: WorkerLimits) -> Plan:
    """Return the plan without isolation: close inherited descriptors, set limits, and exit with the host."""
    return {
        "steps": [
            ["descriptors", {}],
            ["limits", _limits(limits)],
            ["parent", {"pid": os.getpid()}],
            ["no_new_privileges", {}],
        ]
    }


def _limits(limits: WorkerLimits) -> dict[str, int]:
    return {"memory": limits.address_space, "threads": limits.threads, "files": limits.files}


def open_to_everyone(folders: Iterable[Path], *, parents: bool) -> bool:
    """Return whether every user can read these folders recursively.

    Args:
        folders: the folders to check.
        parents: whether all parents of the folders must be accessible too.
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
    """Return the file system of the workers. It is coarser than the Landlock rules, which apply in addition."""
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
    """Return the symbolic links in each of these paths, with their resolved targets."""
    links: dict[str, str] = {}
    for way in ways:
        current = Path("/")
        for part in Path(os.path.abspath(way)).parts[1:]:  # noqa: PTH100 - resolve() would follow the links
            following = current / part
            if following.is_symlink():
                links[str(following)] = os.fspath(following.resolve())
            current = following.resolve()
    return links
