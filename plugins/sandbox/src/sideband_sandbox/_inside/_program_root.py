"""The file system of a command: the programs of the machine, the granted places, and nothing else.

Standard library only and loaded by path, as ``_lockdown.py`` is, which comes in as ``kernel``. It runs in the first
process of the command's namespaces, before anything of the command's does. What it mounts is found without following a
link: a place whose path can be changed by somebody must not lead elsewhere between the check and here.
"""

from __future__ import annotations

import os
import struct
from typing import Any

_OPENAT2 = 437
_OPEN_TREE = 428
_MOVE_MOUNT = 429
_MOUNT_SETATTR = 442
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_AT_EMPTY_PATH = 0x1000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_FROM_DESCRIPTOR = 0x4
_MOVE_MOUNT_TO_DESCRIPTOR = 0x40
_RESOLVE_NO_MAGIC_LINKS, _RESOLVE_NO_LINKS, _RESOLVE_BENEATH = 0x2, 0x4, 0x8
_ATTRIBUTE_READ_ONLY = 0x1
_ATTRIBUTE_MAP_IDS = 0x100000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REC_PRIVATE = 0x44000
_CLONE_NEWUSER = 0x10000000


def open_exactly(kernel: Any, path: str, folder: int = _AT_FDCWD, *, beneath: bool = False) -> int:
    """A descriptor of what is at this path, none of whose parts may be a link. It can't be read from.

    Args:
        kernel: the lock-down module.
        path: absolute, or relative to ``folder``.
        folder: a descriptor.
        beneath: whether it must lie in the folder.

    Raises:
        OSError: it is not there, or a link is on the way.
    """
    resolve = _RESOLVE_NO_LINKS | _RESOLVE_NO_MAGIC_LINKS | (_RESOLVE_BENEATH if beneath else 0)
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, resolve)
    descriptor: int = kernel.system_call(f"open {path}", _OPENAT2, folder, os.fsencode(path), how, len(how))
    return descriptor


def mapping(kernel: Any, uid: int) -> int:
    """A descriptor of a user namespace that says: what belongs to this user belongs to the other one.

    Needs to be root. A mount with it shows the files of the host's user as those of the command's, and the other way
    round what the command creates.
    """
    own = os.geteuid()
    reading, writing = os.pipe()
    ready, made = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(writing)
            kernel.unshare(_CLONE_NEWUSER, with_user=False)
            os.write(made, b"1")
            os.read(reading, 1)
        finally:
            os._exit(0)
    os.close(made)
    os.close(reading)
    try:
        if not os.read(ready, 1):
            raise OSError("no user namespace could be made")
        kernel.write_file(f"/proc/{child}/uid_map", f"{own} {uid} 1")
        kernel.write_file(f"/proc/{child}/gid_map", f"{own} {uid} 1")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(writing)
        os.close(ready)
        os.waitpid(child, 0)


def build(kernel: Any, plan: dict[str, Any], ids: int | None) -> bool:
    """Make the root, and let go of the old one.

    Args:
        kernel: the lock-down module.
        plan: ``staging`` (a folder that exists), ``links`` (``[path, target]``), ``folders`` (``[path, options]`` of
            file systems in memory), ``device_links`` (as ``links``, into those), ``mounts`` (``[source, path, is it a
            folder, attributes, does it belong to the host's user]``, parents first), ``pivot_root`` (the number of
            that system call).
        ids: from ``mapping``, for what belongs to the host's user.

    Returns:
        Whether there is a ``/proc``.
    """
    kernel.mount("none", "/", None, _MS_REC_PRIVATE, None)
    # Taken before the staging folder is covered, because they may lie in it.
    mounts = plan["mounts"]
    trees = [_tree(kernel, source, attributes, ids if own else None) for source, _, _, attributes, own in mounts]
    staging = plan["staging"]
    kernel.mount("tmpfs", staging, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "mode=0755,size=1m")
    os.chdir(staging)
    umask = os.umask(0o022)
    for path, target in plan["links"]:
        os.makedirs(os.path.dirname("." + path), exist_ok=True)  # noqa: PTH103, PTH120 - one import less
        os.symlink(target, "." + path)  # noqa: PTH211 - one import less
    for path, options in plan["folders"]:
        os.makedirs("." + path, exist_ok=True)  # noqa: PTH103 - one import less
        kernel.mount("tmpfs", "." + path, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, options)
    _attach(kernel, mounts, trees)
    for path, target in plan["device_links"]:
        os.symlink(target, "." + path)  # noqa: PTH211 - one import less
    has_processes = _mount_processes(kernel)
    os.umask(umask)
    kernel.leave_old_root(plan["pivot_root"])
    for path in ("/dev", "/"):
        _set_attributes(kernel, (_AT_FDCWD, os.fsencode(path), 0), _ATTRIBUTE_READ_ONLY)
    return has_processes


def _attach(kernel: Any, mounts: list[list[Any]], trees: list[int]) -> None:
    """Put the trees where they belong. Nothing is created inside one of them, where others may change what is there."""
    here = os.open(".", os.O_PATH | os.O_CLOEXEC)
    done: list[str] = []
    for (_, path, is_folder, _, _), tree in zip(mounts, trees, strict=True):
        if not any(path.startswith(f"{before}/") or path == before for before in done):
            _create("." + path, is_folder=is_folder)
        target = open_exactly(kernel, path.lstrip("/"), here, beneath=True)
        how = _MOVE_MOUNT_FROM_DESCRIPTOR | _MOVE_MOUNT_TO_DESCRIPTOR
        kernel.system_call(f"mount {path}", _MOVE_MOUNT, tree, b"", target, b"", how)
        os.close(target)
        os.close(tree)
        done.append(path)
    os.close(here)


def _create(path: str, *, is_folder: bool) -> None:
    if is_folder:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 - one import less
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - one import less
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))


def _tree(kernel: Any, source: str, attributes: int, ids: int | None) -> int:
    """A descriptor of a copy of the mounts at this path, which are not yet anywhere."""
    found = open_exactly(kernel, source)
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE | _AT_EMPTY_PATH
    tree: int = kernel.system_call(f"take {source}", _OPEN_TREE, found, b"", flags)
    os.close(found)
    _set_attributes(kernel, (tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE), attributes, ids)
    return tree


def _set_attributes(kernel: Any, at: tuple[int, bytes, int], attributes: int, ids: int | None = None) -> None:
    """``at`` is a descriptor, a path from there, and flags that say how the two go together."""
    words = struct.pack("=QQQQ", attributes | (0 if ids is None else _ATTRIBUTE_MAP_IDS), 0, 0, ids or 0)
    what = "set the attributes of a mount"
    kernel.system_call(what, _MOUNT_SETATTR, *at, words, len(words))


def _mount_processes(kernel: Any) -> bool:
    """A ``/proc`` with the command's own processes and nothing of the machine, if the kernel gives it."""
    os.mkdir("proc")  # noqa: PTH102 - one import less
    try:
        kernel.mount("proc", "./proc", "proc", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "subset=pid")
    except OSError:
        return False
    return True
