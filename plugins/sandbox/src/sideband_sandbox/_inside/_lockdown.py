"""Locks down the process that runs it: the zygote, and each worker before it reads anything written by the skill.

Uses the standard library only and is loaded by path as a single file, because the process runs with ``-I -S`` and has
no access to packages. The host makes all decisions (paths, system calls, identity) and passes them in the plan, whose
steps are carried out in order. If a step fails, the process exits with ``EXIT_CODE``; it never continues partly locked
down. The kernel functions for a program's keeper and init process are here too.

A plan is JSON: ``{"steps": [[NAME, {argument: value}], …]}``; the names are the keys of ``_STEPS`` below.
"""

from __future__ import annotations

import base64
import ctypes
import os
import resource
import select
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any

EXIT_CODE = 97

_FIRST_CLOSED_DESCRIPTOR = 4  # 0, 1, 2 and the protocol's 3 stay open

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_EINVAL = 22

_HOST_NAME = b"worker"

_CLONE_THREAD = 0x00010000
_CLONE_NEWUSER = 0x10000000
_CLONE_NAMESPACES = 0x6E020000  # mount, cgroup, uts, ipc, pid, network

_OPEN_TREE = 428
_MOVE_MOUNT = 429
_MOUNT_SETATTR = 442
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_AT_EMPTY_PATH = 0x1000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4
_ATTRIBUTES_OF_MOUNTS = 0x07  # read-only, no setuid programs, no devices
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REC_PRIVATE = 0x44000
_MNT_DETACH = 2

_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_RULE_PATH_BENEATH = 1

_CAPABILITY_VERSION_3 = 0x20080522
_CAP_KILL = 5
_CAP_SETPCAP = 8
_CAPABILITY_COUNT = 64

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class LockdownFailed(OSError):
    """A step failed, so no other code may run in this process."""


def apply(plan: dict[str, Any], orders: dict[str, Any] | None = None) -> dict[str, Any]:
    """Carry out the plan.

    Args:
        plan: the plan that the host made for this kind of process.
        orders: additional arguments of this process, by step name; ``None`` skips the step.

    Returns:
        ``{"steps": [names of the completed steps, in order]}``.

    Raises:
        LockdownFailed: if a step fails or is unknown. The caller must exit with ``EXIT_CODE``.
    """
    done = []
    for name, arguments in plan["steps"]:
        step = _STEPS.get(name)
        if step is None:
            raise LockdownFailed(f"unknown lockdown step `{name}`")
        own = (orders or {}).get(name, {})
        if own is None:
            continue
        try:
            step(**arguments, **own)
        except (OSError, TypeError, ValueError) as error:
            raise LockdownFailed(f"lockdown step `{name}` failed: {error}") from error
        done.append(name)
    return {"steps": done}


def _descriptors() -> None:
    os.closerange(_FIRST_CLOSED_DESCRIPTOR, os.sysconf("SC_OPEN_MAX"))


def _single_thread() -> None:
    """Fail if another thread is running: Landlock and user IDs apply per thread, so it would not be restricted."""
    if _libc.unshare(_CLONE_THREAD) == 0:
        return
    if ctypes.get_errno() == _EINVAL:
        raise OSError("another thread is running")
    # If unshare itself is blocked by a filter, count the threads in /proc instead.
    if len(os.listdir("/proc/self/task")) != 1:  # noqa: PTH208 - pathlib would cost every worker its import
        raise OSError("another thread is running")


class _Lifeline:
    """A pipe whose other end the parent holds: a process in its own process namespace cannot see its parent's ID."""

    end: int | None = None


def _namespaces(host: int, with_user: bool, root: dict[str, Any]) -> None:
    """Enter new namespaces: no processes or network of the machine, and only the files of the new root.

    A host that does not run as root needs ``with_user``, because it may only do this inside a new user namespace.

    The first child becomes process 1 of the new process namespace. This process only waits for the child, and exits
    when the child exits.
    """
    unshare(_CLONE_NAMESPACES, with_user=with_user)
    name_machine(_HOST_NAME)
    _new_root(**root)
    _parent(host)
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.closerange(0, writing)
        _capabilities(kept=1 << _CAP_KILL)  # the kernel sends the child PDEATHSIG only if this process may kill it
        status = os.waitpid(child, 0)[1]
        os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else EXIT_CODE)
    os.close(writing)
    _Lifeline.end = reading


def unshare(namespaces: int, *, with_user: bool) -> None:
    """Move to new namespaces; ``with_user`` adds a user namespace in which the user and group IDs stay the same."""
    uid, gid = os.geteuid(), os.getegid()
    succeed(_libc.unshare(namespaces | (_CLONE_NEWUSER if with_user else 0)), "unshare")
    if with_user:
        write_file("/proc/self/setgroups", "deny")
        write_file("/proc/self/uid_map", f"{uid} {uid} 1")
        write_file("/proc/self/gid_map", f"{gid} {gid} 1")


def name_machine(name: bytes) -> None:
    """Set the host name in the current UTS namespace."""
    succeed(_libc.sethostname(name, len(name)), "sethostname")


def leave_old_root(number: int) -> None:
    """Make the current folder the root, and detach the old root.

    Args:
        number: the system call number of ``pivot_root``.
    """
    system_call("pivot_root", number, b".", b".")
    succeed(_libc.umount2(b".", _MNT_DETACH), "detach the old root")
    os.chdir("/")


def write_file(path: str, content: str) -> None:
    """Write to a file in ``/proc``."""
    with open(path, "w", encoding="ascii") as stream:  # noqa: PTH123 - avoids an import
        stream.write(content)


def _new_root(
    staging: str, links: list[list[str]], mounts: list[list[Any]], hidden: list[str], pivot_root: int
) -> None:
    """Build a read-only file system from the given parts, and detach the old one.

    Args:
        staging: an existing folder on which the new root is mounted.
        links: ``[path, target]``.
        mounts: ``[path, whether it is a folder]``, parents first.
        hidden: folders inside the mounts that must appear empty.
        pivot_root: the number of that system call.
    """
    mount("none", "/", None, _MS_REC_PRIVATE, None)
    # Cloned before a mount covers the staging folder, because they may be inside it.
    trees = [(path, is_folder, _read_only_tree(path)) for path, is_folder in mounts]
    mount("tmpfs", staging, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "mode=0755,size=1m")
    os.chdir(staging)
    os.umask(0o022)
    for path, target in links:
        os.makedirs(os.path.dirname("." + path), exist_ok=True)  # noqa: PTH103, PTH120 - avoids an import
        os.symlink(target, "." + path)  # noqa: PTH211 - avoids an import
    for path, is_folder, tree in trees:
        _mount_point("." + path, is_folder=is_folder)
        system_call(
            f"mount {path}", _MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode("." + path), _MOVE_MOUNT_F_EMPTY_PATH
        )
        os.close(tree)
    for path in hidden:
        mount("tmpfs", "." + path, "tmpfs", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "mode=0755,size=4k")
    leave_old_root(pivot_root)
    _set_read_only(_AT_FDCWD, b"/", 0)


def _mount_point(path: str, *, is_folder: bool) -> None:
    if is_folder:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 - avoids an import
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - avoids an import
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))


def _read_only_tree(path: str) -> int:
    """Return a descriptor of a detached, read-only copy of the mounts at this path."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
    tree = system_call(f"clone the mounts at {path}", _OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)
    _set_read_only(tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE)
    return tree


def _set_read_only(folder: int, path: bytes, flags: int) -> None:
    attributes = struct.pack("=QQQQ", _ATTRIBUTES_OF_MOUNTS, 0, 0, 0)
    system_call("make read-only", _MOUNT_SETATTR, folder, path, flags, attributes, len(attributes))


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    """Mount a file system. Raises ``OSError``."""
    words = [None if each is None else os.fsencode(each) for each in (source, target, kind, options)]
    succeed(_libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]), f"mount {target}")


def _user_namespace() -> None:
    """Enter a new user namespace without mappings, so that the limit of threads counts only those of this worker."""
    succeed(_libc.unshare(_CLONE_NEWUSER), "unshare")


def _limits(memory: int, threads: int, files: int) -> None:
    for kind, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NPROC, threads),
        (resource.RLIMIT_NOFILE, files),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))


def _identity(uid: int) -> None:
    """Switch to a user and group that own no files or processes."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _parent(pid: int) -> None:
    """Request SIGKILL at the parent's exit. Must follow the change of identity, which clears the request."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if _Lifeline.end is None:
        alive = os.getppid() == pid
    else:
        alive = not select.select([_Lifeline.end], [], [], 0)[0]
        os.close(_Lifeline.end)
        _Lifeline.end = None
    if not alive:
        raise OSError("the host has already exited")


def _bounding_set() -> None:
    """Clear the bounding set. Must precede the change of identity, which drops the CAP_SETPCAP that this needs."""
    if not _has_capability(_CAP_SETPCAP):
        return
    for number in range(_CAPABILITY_COUNT):
        if _libc.prctl(_PR_CAPBSET_READ, ctypes.c_ulong(number), 0, 0, 0) == 1:
            prctl(_PR_CAPBSET_DROP, number)


def _capabilities(kept: int = 0) -> None:
    """Drop all capabilities except those in the mask that the process has; only the first 32 can be kept."""
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    permitted = sum(1 << number for number in range(32) if kept >> number & 1 and _has_capability(number))
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    succeed(_libc.capset(header, (ctypes.c_uint32 * 6)(permitted, permitted)), "capset")


def _has_capability(number: int) -> bool:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()
    succeed(_libc.capget(header, sets), "capget")
    return bool(sets[3 * (number // 32)] >> (number % 32) & 1)


def _no_new_privileges() -> None:
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _landlock(
    files: int, network: int, scopes: int, rules: list[list[Any]], own: list[list[Any]] | None = None
) -> None:
    """Deny every right in the masks, except on the paths of the rules: ``[rights, folder, [names in it]]``.

    Without names the rule applies to the whole folder, which may also be given as a descriptor, which is then closed.
    ``own`` contains the rules for this process only.
    """
    size = 8 * (3 if scopes else 2 if network else 1)  # older kernels accept only a shorter structure
    attributes = struct.pack("=QQQ", files, network, scopes)[:size]
    ruleset = system_call("create ruleset", _LANDLOCK_CREATE_RULESET, attributes, size, 0)
    for rights, folder, names in [*rules, *(own or [])]:
        for path in [f"{folder}/{name}" for name in names] or [folder]:
            _allow_beneath(ruleset, path, rights)
    system_call("restrict", _LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow_beneath(ruleset: int, path: str | int, rights: int) -> None:
    descriptor = path if isinstance(path, int) else os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, descriptor)  # struct landlock_path_beneath_attr is packed
        system_call(f"allow {path}", _LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def _seccomp(code: str, own_pid_at: list[int]) -> None:
    """Install the base64-encoded filter. It cannot be removed, and threads inherit it."""
    program = bytearray(base64.b64decode(code))
    for index in own_pid_at:
        program[8 * index + 4 : 8 * index + 8] = os.getpid().to_bytes(4, sys.byteorder)
    filters = _FilterProgram(len(program) // 8, bytes(program))
    succeed(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filters), 0, 0), "install filter")


def prctl(option: int, value: int) -> None:
    """Call ``prctl``. Raises ``OSError``."""
    succeed(
        _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)), "prctl"
    )


def system_call(what: str, number: int, *arguments: int | bytes) -> int:
    """Make a system call. Integers are passed as whole words, so that no upper half is undefined."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return succeed(_libc.syscall(ctypes.c_long(number), *words), what)


def succeed(result: int, what: str) -> int:
    """Raise ``OSError`` if a C function failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


_STEPS: dict[str, Callable[..., None]] = {
    "descriptors": _descriptors,
    "single_thread": _single_thread,
    "namespaces": _namespaces,
    "user_namespace": _user_namespace,
    "limits": _limits,
    "bounding_set": _bounding_set,
    "identity": _identity,
    "parent": _parent,
    "capabilities": _capabilities,
    "no_new_privileges": _no_new_privileges,
    "landlock": _landlock,
    "seccomp": _seccomp,
}
