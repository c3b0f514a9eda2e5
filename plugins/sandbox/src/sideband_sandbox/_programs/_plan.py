"""Translates a program request into the plan that the keeper, the init process and the program's process carry out."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from attrs import frozen
from sideband.workers import Place, ProgramRequest

from .._inside import Plan
from .._machine._inspection import Machine
from .._machine._landlock import (
    CONNECT_UNIX,
    EXECUTE,
    FILE_RIGHTS,
    READ_DIRECTORY,
    READ_FILE,
    WRITABLE,
    WRITE_FILE,
    Landlock,
)
from ._filter import NUMBERS, execution_filter, program_filter

_CLONE_NEWNET = 0x40000000
_CLONE_OTHERS = 0x02000000 | 0x04000000 | 0x08000000 | 0x00020000 | 0x20000000  # cgroup, uts, ipc, mount, process

_READ_ONLY, _NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8

_MEBIBYTE = 1 << 20
_TEMPORARY_BYTES = 256 * _MEBIBYTE
_TEMPORARY_FILES = 65_536
_SHARED_BYTES = 64 * _MEBIBYTE

# The machine's programs and libraries, and the files that they commonly read. None are secret; all are read-only.
_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_FACTS = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/group", "/etc/host.conf",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types",
    "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki/ca-trust/extracted", "/etc/pki/tls/certs", "/etc/protocols",
    "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo",
)  # fmt: skip
_FACTS_OF_NETWORK = ("/etc/gai.conf", "/etc/hosts", "/etc/resolv.conf")
_DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")
_DEVICE_LINKS = (
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
)


@frozen
class ProgramVariant:
    """One way to isolate programs.

    Args:
        namespaces: whether a program has its own mount, pid, network, ipc and uts namespaces.
        user_namespace: whether these are in a user namespace of its own, which an ordinary user needs.
        own_user: whether a program runs as an otherwise unused user; requires root.
        maps_ids: with ``own_user``, whether files of the host's user in a granted place belong to the program's user.
    """

    namespaces: bool = False
    user_namespace: bool = False
    own_user: bool = False
    maps_ids: bool = False


def program_plan(
    machine: Machine, variant: ProgramVariant, request: ProgramRequest, *, uid: int, temporary: Path
) -> Plan:
    """Return the plan for one program. Accesses the file system, so async code must call it in a thread.

    Args:
        machine: the features of the machine.
        variant: the way to isolate the program.
        request: the program.
        uid: the program's user ID, if the variant has its own user.
        temporary: an empty folder; the root is mounted on it, or, without namespaces, it is the program's own.
    """
    identity = uid if variant.own_user else None
    private = Path("/tmp") if variant.namespaces else temporary.resolve()  # noqa: S108 - the program's own
    limits = request.limits
    return {
        "host": os.getpid(),
        "arguments": list(request.arguments),
        "environment": {"HOME": str(private), "TMPDIR": str(private), **request.environment},
        "folder": str(request.folder),
        "namespaces": (_CLONE_OTHERS | (0 if request.network else _CLONE_NEWNET)) if variant.namespaces else 0,
        "with_user": variant.user_namespace,
        "identity": identity,
        "maps_ids": variant.maps_ids,
        "root": _root(machine, request, identity, temporary) if variant.namespaces else None,
        "landlock": _landlock(machine.landlock, network=request.network),
        "rules": list(_rules(machine.landlock, variant, request, private)),
        "seccomp": _seccomp(machine, variant, request),
        "execution": None if request.runs_others else _execution(machine),
        "memory": limits.memory,
        "limits": {
            "DATA": limits.memory,
            # Without its own user, the keeper and the init process count too.
            "NPROC": limits.processes + _other_threads(variant) + (2 if identity is None else 0),
            "NOFILE": limits.files,
            "FSIZE": limits.file_size,
            "CPU": limits.cpu_seconds,
            "CORE": 0,
            "MEMLOCK": 65_536,
        },
    }


def _other_threads(variant: ProgramVariant) -> int:
    """Return the number of threads of the host's user, if they count against the program's limit."""
    if variant.own_user or variant.user_namespace:
        return 0
    uid, count = os.geteuid(), 0
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                count += len(os.listdir(f"{entry.path}/task")) if entry.stat().st_uid == uid else 0  # noqa: PTH208
            except OSError:
                continue
    return count


def _landlock(landlock: Landlock, *, network: bool) -> dict[str, Any]:
    return {
        "files": landlock.files,
        "network": 0 if network else landlock.network,
        "scopes": landlock.scopes,
        "rules": [],
    }


def _may_open_sockets(landlock: Landlock, variant: ProgramVariant, request: ProgramRequest) -> bool:
    """Return whether the program may create unix sockets, and so connect to every service whose socket it can reach.

    A read-only place does not prevent that. So it needs the request's consent, and a machine whose other sockets are
    hidden.
    """
    if landlock.hides_sockets:
        return True
    if not variant.namespaces or (request.places and not request.sockets):
        return False
    # With the machine's network, a program also shares its abstract names.
    return not request.network or landlock.hides_abstract_sockets


def _seccomp(machine: Machine, variant: ProgramVariant, request: ProgramRequest) -> dict[str, Any]:
    own_sockets = _may_open_sockets(machine.landlock, variant, request)
    rights = {"network": request.network, "own_sockets": own_sockets, "own_ipc": variant.namespaces}
    program = program_filter(machine.architecture, **rights)
    return {"code": base64.b64encode(program.code).decode("ascii"), "own_pid_at": list(program.own_pid_at)}


def _execution(machine: Machine) -> dict[str, Any]:
    program = execution_filter(machine.architecture)
    number = NUMBERS[machine.architecture.machine]["seccomp"]
    return {"number": number, "code": base64.b64encode(program.code).decode("ascii")}


def _rules(
    landlock: Landlock, variant: ProgramVariant, request: ProgramRequest, private: Path
) -> Iterator[tuple[int, str]]:
    """Yield Landlock's rules: the rights, and the path to which they apply recursively."""
    for path in _existing(_PROGRAMS):
        yield _reading(path, EXECUTE), str(path.resolve())
    for path in _existing(_facts(request)):
        # In a file system of its own the file is mounted at its name; otherwise resolve symbolic links.
        yield _reading(path), str(path if variant.namespaces else path.resolve())
    for path in _existing(_DEVICES):
        yield READ_FILE | WRITE_FILE, str(path)
    for place in request.places:
        reading = _reading(place.path, EXECUTE if _may_execute(place) else 0)
        sockets = CONNECT_UNIX & landlock.files if request.sockets and place.path.is_dir() else 0
        yield reading | (_writing(place.path) if place.writable else 0) | sockets, str(place.path)
    if not _is_granted(request, _program(request)):
        yield READ_FILE | EXECUTE, str(_program(request))
    yield READ_FILE | READ_DIRECTORY | WRITABLE, str(private)
    if variant.namespaces:
        yield READ_FILE | READ_DIRECTORY | WRITABLE, "/dev/shm"  # noqa: S108 - the program's own
        yield READ_FILE | READ_DIRECTORY, "/proc"
        # Listing any folder is safe: its file system contains only what it may know.
        yield READ_DIRECTORY, "/"


def _may_execute(place: Place) -> bool:
    return place.executable or not place.writable


def _reading(path: Path, more: int = 0) -> int:
    return READ_FILE | more | (READ_DIRECTORY if path.is_dir() else 0)


def _writing(path: Path) -> int:
    return WRITABLE if path.is_dir() else WRITABLE & FILE_RIGHTS


def _root(machine: Machine, request: ProgramRequest, identity: int | None, staging: Path) -> dict[str, Any]:
    """Return the file system of the program."""
    uid, gid = (os.geteuid(), os.getegid()) if identity is None else (identity, identity)
    owner = f"mode=0700,uid={uid},gid={gid}"
    links = [(str(path), str(path.readlink())) for path in map(Path, _PROGRAMS) if path.is_symlink()]
    return {
        "staging": str(staging.resolve()),
        "links": [list(link) for link in links],
        "folders": [
            ["/dev", "mode=0755,size=64k"],
            ["/dev/shm", f"{owner},size={_SHARED_BYTES},nr_inodes=1024"],  # noqa: S108 - the program's own
            ["/tmp", f"{owner},size={_TEMPORARY_BYTES},nr_inodes={_TEMPORARY_FILES}"],  # noqa: S108
        ],
        "device_links": [list(link) for link in _DEVICE_LINKS],
        "mounts": [list(mount) for mount in sorted(set(_mounts(request)), key=lambda mount: mount[1])],
        "pivot_root": machine.architecture.pivot_root,
    }


def _mounts(request: ProgramRequest) -> Iterator[tuple[str, str, bool, int, bool]]:
    """Yield the source, the target, whether it is a folder, the attributes, and whether IDs may be mapped."""
    system = _READ_ONLY | _NO_SETUID | _NO_DEVICES
    for path in _existing(_PROGRAMS):
        if not path.is_symlink():
            yield str(path), str(path), path.is_dir(), system, False
    for path in _existing(_facts(request)):
        yield str(path.resolve()), str(path), path.is_dir(), system | _NO_PROGRAMS, False
    for path in _existing(_DEVICES):
        yield str(path), str(path), False, _NO_SETUID | _NO_PROGRAMS, False
    for place in request.places:
        attributes = _NO_SETUID | _NO_DEVICES | (0 if place.writable else _READ_ONLY)
        attributes |= 0 if _may_execute(place) else _NO_PROGRAMS
        yield str(place.path), str(place.path), place.path.is_dir(), attributes, True
    program = _program(request)
    if not _is_granted(request, program):
        yield str(program), str(program), False, system, True


def _program(request: ProgramRequest) -> Path:
    return Path(request.arguments[0]).resolve()


def _is_granted(request: ProgramRequest, program: Path) -> bool:
    """Return whether the executable is in a folder that the program may read anyway."""
    folders = [*(path.resolve() for path in _existing(_PROGRAMS)), *(place.path for place in request.places)]
    return any(program.is_relative_to(folder) for folder in folders)


def _facts(request: ProgramRequest) -> tuple[str, ...]:
    return _FACTS + (_FACTS_OF_NETWORK if request.network else ())


def _existing(paths: Iterable[str]) -> list[Path]:
    return [Path(path) for path in paths if Path(path).exists()]
