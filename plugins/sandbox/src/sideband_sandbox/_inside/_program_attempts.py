"""The probe program: tries actions that must fail in every program, and actions that must succeed.

Runs by path like any program, in the interpreter that also runs the keepers, with the standard library only. It reads
its facts as JSON from standard input and writes its report as JSON to standard output. It leaves a process behind that
keeps standard output open, so the host sees end-of-file only once that process has been killed too.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

Facts = dict[str, Any]
Attempt = Callable[[Facts], object]

_PTRACE_SEIZE = 0x4206
_CLONE_NEWUSER = 0x10000000
_TIOCSTI = 0x5412


def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _demand(result: int) -> int:
    """Raise ``OSError`` if a C function failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _call(facts: Facts, name: str, *arguments: int) -> None:
    """Make a system call. Only EPERM and EACCES count as a refusal; other errors come from the dummy arguments."""
    words = [ctypes.c_long(each) for each in arguments]
    try:
        result = _demand(_libc().syscall(ctypes.c_long(facts["numbers"][name]), *words))
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            raise
        return
    if result > 2:
        os.close(result)


def _read(path: str) -> None:
    with open(path, "rb") as stream:  # noqa: PTH123 - as a program would
        stream.read(16)


def _write(path: str) -> None:
    """Open a file for writing. This alone counts as success, whether or not the disk has space."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _write_and_remove(path: str) -> None:
    """Write a file and remove it, so that a success leaves nothing behind on the machine."""
    _write(path)
    os.unlink(path)  # noqa: PTH108 - as a program would


def _socket(family: int, kind: int = socket.SOCK_STREAM) -> None:
    socket.socket(family, kind).close()


def _connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.connect(address)


def _other_processes(_: Facts) -> None:
    """Find a process other than this one and its init process. All children of earlier attempts have been reaped."""
    numbers = {int(name) for name in os.listdir("/proc") if name.isdecimal()}  # noqa: PTH208 - as a program would
    if not numbers - {1, os.getpid()}:
        raise ProcessLookupError("only its own processes are visible")


def _signal_host(facts: Facts) -> None:
    """Signal the host. In namespaces its number may also be that of the first process, or of this one."""
    if facts["namespaces"] and facts["host"] in (1, os.getpid()):
        raise ProcessLookupError("the host has no number in this process namespace")
    os.kill(facts["host"], 0)


def _own_program(folder: str) -> None:
    """Write a program and execute it."""
    path = f"{folder}/own-program"
    with open(path, "wb") as stream:  # noqa: PTH123 - as a program would
        stream.write(b"#!/bin/sh\nexit 0\n")
    os.chmod(path, 0o700)  # noqa: PTH101 - as a program would
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(path, [path])  # noqa: S606 - the point is to try
        finally:
            os._exit(1)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1:
        raise PermissionError(errno.EACCES, "the program cannot be executed")


def _set_user_id(folder: str) -> None:
    """Leave a file that runs with the rights of its owner."""
    path = f"{folder}/set-user-id"
    _write(path)
    os.chmod(path, 0o4700)  # noqa: PTH101 - as a program would


def _shared_memory(_: Facts) -> None:
    libc = _libc()
    libc.shmctl(_demand(libc.shmget(0, 4096, 0o600)), 0, None)


def _clone(facts: Facts) -> None:
    words = [ctypes.c_long(each) for each in (facts["numbers"]["clone"], _CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)]
    pid = _demand(_libc().syscall(*words))
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _type_ahead(_: Facts) -> None:
    _demand(_libc().ioctl(0, ctypes.c_ulong(_TIOCSTI), b"x"))


def _more_processes(facts: Facts) -> None:
    reading, writing = os.pipe()
    started = []
    try:
        for _ in range(facts["processes"] + 1):
            pid = os.fork()
            if pid == 0:
                os.close(writing)
                os.read(reading, 1)
                os._exit(0)
            started.append(pid)
    finally:
        os.close(writing)
        os.close(reading)
        for pid in started:
            os.waitpid(pid, 0)


MUST_FAIL: dict[str, Attempt] = {
    "read a file outside its places": lambda facts: _read(facts["secret"]),
    "list a folder outside its places": lambda facts: os.listdir(os.path.dirname(facts["secret"])),  # noqa: PTH120, PTH208
    "read /etc/shadow": lambda _: _read("/etc/shadow"),
    "write to a read-only place": lambda facts: _write(facts["readable"] + "/written"),
    "write to /usr": lambda _: _write_and_remove("/usr/sideband-attempt"),
    "change the kernel's settings": lambda _: _write("/proc/sys/kernel/core_pattern"),
    "write outside its places": lambda facts: _write(facts["open"] + "/written"),
    "write to /dev": lambda _: _write_and_remove("/dev/sideband-attempt"),
    "run a program that it has written in a place": lambda facts: _own_program(facts["writable"]),
    "run a program that it has written in its temporary folder": lambda _: _own_program(os.environ["TMPDIR"]),
    "leave a set-user-ID file in a place": lambda facts: _set_user_id(facts["writable"]),
    "open an IPv4 socket": lambda _: _socket(socket.AF_INET),
    "open an IPv6 socket": lambda _: _socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "open a netlink socket": lambda _: _socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "open a packet socket": lambda _: _socket(socket.AF_PACKET, socket.SOCK_RAW),
    "open a vsock socket": lambda _: _socket(40),
    "reach a service by its abstract name": lambda facts: _connect("\0" + facts["abstract"]),
    "reach a service by its path": lambda facts: _connect(facts["service"]),
    "reach a service in a read-only place": lambda facts: _connect(facts["readable"] + "/service"),
    "reach a service in a writable place": lambda facts: _connect(facts["writable"] + "/service"),
    "signal the host": _signal_host,
    "trace another process": lambda facts: _call(facts, "ptrace", _PTRACE_SEIZE, os.getppid(), 0, 0),
    "read the memory of another process": lambda facts: _call(facts, "process_vm_readv", os.getppid(), 0, 0, 0, 0, 0),
    "take a descriptor of another process": lambda facts: _call(facts, "pidfd_getfd", 0, 0, 0),
    "create a process in a namespace": _clone,
    "create a namespace": lambda facts: _call(facts, "unshare", _CLONE_NEWUSER),
    "mount a file system": lambda facts: _call(facts, "mount", 0, 0, 0, 0, 0),
    "unmount a file system": lambda facts: _call(facts, "umount2", 0, 0),
    "change its root": lambda facts: _call(facts, "chroot", 0),
    "load code into the kernel": lambda facts: _call(facts, "bpf", 0, 0, 0),
    "use performance counters": lambda facts: _call(facts, "perf_event_open", 0, 0, 0, 0, 0),
    "use the kernel's keyrings": lambda facts: _call(facts, "keyctl", 0, 0, 0, 0, 0),
    "use io_uring": lambda facts: _call(facts, "io_uring_setup", 1, 0),
    "use userfaultfd": lambda facts: _call(facts, "userfaultfd", 0),
    "set the clock": lambda facts: _call(facts, "clock_settime", 0, 0),
    "type into a terminal": _type_ahead,
    "outlive the host": lambda _: _demand(_libc().prctl(1, 0, 0, 0, 0)),
    "become root": lambda _: os.setuid(0) if os.getuid() else _demand(_libc().sethostname(b"x", 1)),
}

MUST_FAIL_IN_NAMESPACES: dict[str, Attempt] = {
    "learn whether a file exists": lambda facts: os.stat(facts["secret"]),  # noqa: PTH116 - as a program would
    "see the machine's processes": _other_processes,
}
# In namespaces the init process ignores signals from inside; a keeper without namespaces does not.
MUST_FAIL_WITHOUT_NAMESPACES: dict[str, Attempt] = {
    "use shared memory in the machine's ipc namespace": _shared_memory,
    "signal its keeper": lambda _: os.kill(os.getppid(), 0),
}
MUST_FAIL_WITH_PROCESS_LIMIT: dict[str, Attempt] = {
    "start more processes than its limit": _more_processes,
}


def _run_program(_: Facts) -> None:
    pid = os.fork()
    if pid == 0:
        os.execv("/bin/sh", ["sh", "-c", "exit 7"])  # noqa: S606 - the point is to try
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 7:
        raise OSError("unexpected exit code")


def _pair(_: Facts) -> None:
    for end in socket.socketpair():
        end.close()


MUST_WORK: dict[str, Attempt] = {
    "read a place": lambda facts: _read(facts["readable"] + "/" + facts["file"]),
    "write to a writable place": lambda facts: _write(facts["writable"] + "/written"),
    "write to its temporary folder": lambda _: _write(os.environ["TMPDIR"] + "/written"),
    "use the null device": lambda _: _write("/dev/null"),
    "run one of the machine's programs": _run_program,
    "create a socket pair": _pair,
}


def _try_all(attempts: dict[str, Attempt], facts: Facts) -> dict[str, str | None]:
    """Return for each attempt the error that stopped it, or ``None`` if it succeeded."""
    outcomes: dict[str, str | None] = {}
    for name, attempt in attempts.items():
        try:
            attempt(facts)
        except Exception as error:  # noqa: BLE001 - any error is a result
            outcomes[name] = f"{type(error).__name__}: {error}"
        else:
            outcomes[name] = None
    return outcomes


def _leave_behind() -> None:
    """Leave an orphan in a session of its own behind, which runs until it is killed."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        signal.pause()


def main() -> None:
    """Make all attempts, and print the report."""
    facts = json.loads(open(0, "rb", buffering=0, closefd=False).readline())  # noqa: SIM115 - the descriptor stays open
    forbidden = dict(MUST_FAIL)
    forbidden.update(MUST_FAIL_IN_NAMESPACES if facts["namespaces"] else MUST_FAIL_WITHOUT_NAMESPACES)
    if facts["process_limit"]:
        forbidden.update(MUST_FAIL_WITH_PROCESS_LIMIT)
    report = {"must_work": _try_all(MUST_WORK, facts), "must_fail": _try_all(forbidden, facts)}
    _leave_behind()
    print(json.dumps(report), flush=True)
    # The host reads this process's status from /proc before it closes standard input.
    os.read(0, 1)


if __name__ == "__main__":
    main()
