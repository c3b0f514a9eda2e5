"""Builds the file system of a program: the machine's programs, the granted places, and nothing else.

Uses the standard library only and is loaded by path, like ``_lockdown.py``, which is passed in as ``kernel``. It runs
in the init process of the program's namespaces, before the program starts. Mount sources are opened without following
symbolic links: a path that another process can change must not lead elsewhere between the check and the mount.
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
    """Open a path without following symbolic links, and return an ``O_PATH`` descriptor.

    Args:
        kernel: the lockdown module.
        path: an absolute path, or a path relative to ``folder``.
        folder: the descriptor of a folder.
        beneath: whether the path must be inside the folder.

    Raises:
        OSError: if the path does not exist or contains a symbolic link.
    """
    resolve = _RESOLVE_NO_LINKS | _RESOLVE_NO_MAGIC_LINKS | (_RESOLVE_BENEATH if beneath else 0)
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, resolve)
    descriptor: int = kernel.system_call(f"open {path}", _OPENAT2, folder, os.fsencode(path), how, len(how))
    return descriptor


def mapping(kernel: Any, uid: int) -> int:
    """Return the descriptor of a user namespace that maps the host's user to the program's user.

    Requires root. An ID-mapped mount with it shows the files of the host's user as those of the program's user, and
    stores files that the program creates as those of the host's user.
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
            raise OSError("cannot create a user namespace")
        kernel.write_file(f"/proc/{child}/uid_map", f"{own} {uid} 1")
        kernel.write_file(f"/proc/{child}/gid_map", f"{own} {uid} 1")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(writing)
        os.close(ready)
        os.waitpid(child, 0)


def build(kernel: Any, plan: dict[str, Any], ids: int | None) -> bool:
    """Build the new root, and detach the old one.

    Args:
        kernel: the lockdown module.
        plan: ``staging`` (an existing folder), ``links`` (``[path, target]``), ``folders`` (``[path, options]`` of
            tmpfs mounts), ``device_links`` (like ``links``, inside those mounts), ``mounts`` (``[source, path, whether
            it is a folder, attributes, whether its IDs are mapped]``, parents first), ``pivot_root`` (the number of
            that system call).
        ids: the descriptor returned by ``mapping``, if IDs are mapped.

    Returns:
        Whether ``/proc`` could be mounted.
    """
    kernel.mount("none", "/", None, _MS_REC_PRIVATE, None)
    # Cloned before a mount covers the staging folder, because they may be inside it.
    mounts = plan["mounts"]
    trees = [_tree(kernel, source, attributes, ids if own else None) for source, _, _, attributes, own in mounts]
    staging = plan["staging"]
    kernel.mount("tmpfs", staging, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "mode=0755,size=1m")
    os.chdir(staging)
    umask = os.umask(0o022)
    for path, target in plan["links"]:
        os.makedirs(os.path.dirname("." + path), exist_ok=True)  # noqa: PTH103, PTH120 - avoids an import
        os.symlink(target, "." + path)  # noqa: PTH211 - avoids an import
    for path, options in plan["folders"]:
        os.makedirs("." + path, exist_ok=True)  # noqa: PTH103 - avoids an import
        kernel.mount("tmpfs", "." + path, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, options)
    _attach(kernel, mounts, trees)
    for path, target in plan["device_links"]:
        os.symlink(target, "." + path)  # noqa: PTH211 - avoids an import
    has_processes = _mount_processes(kernel)
    os.umask(umask)
    kernel.leave_old_root(plan["pivot_root"])
    for path in ("/dev", "/"):
        _set_attributes(kernel, (_AT_FDCWD, os.fsencode(path), 0), _ATTRIBUTE_READ_ONLY)
    return has_processes


def _attach(kernel: Any, mounts: list[list[Any]], trees: list[int]) -> None:
    """Attach the trees at their paths. Nothing is created inside a tree, which other processes may be changing."""
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
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 - avoids an import
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - avoids an import
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))


def _tree(kernel: Any, source: str, attributes: int, ids: int | None) -> int:
    """Return a descriptor of a detached copy of the mounts at this path."""
    found = open_exactly(kernel, source)
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE | _AT_EMPTY_PATH
    tree: int = kernel.system_call(f"clone the mounts at {source}", _OPEN_TREE, found, b"", flags)
    os.close(found)
    _set_attributes(kernel, (tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE), attributes, ids)
    return tree


def _set_attributes(kernel: Any, at: tuple[int, bytes, int], attributes: int, ids: int | None = None) -> None:
    """Set attributes of the mount at a descriptor, a path relative to it, and lookup flags."""
    words = struct.pack("=QQQQ", attributes | (0 if ids is None else _ATTRIBUTE_MAP_IDS), 0, 0, ids or 0)
    what = "set the attributes of a mount"
    kernel.system_call(what, _MOUNT_SETATTR, *at, words, len(words))


def _mount_processes(kernel: Any) -> bool:
    """Mount a ``/proc`` that shows only the program's processes. Return whether the kernel supports it."""
    os.mkdir("proc")  # noqa: PTH102 - avoids an import
    try:
        kernel.mount("proc", "./proc", "proc", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "subset=pid")
    except OSError:
        return False
    return True
