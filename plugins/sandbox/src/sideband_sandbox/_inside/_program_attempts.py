"""The throw-away command: tries what no command must be able to do, and what each must be able to.

Runs by path as any command, in the interpreter that carries out the plans of all. The standard library only; facts come
as JSON on standard input, the answer goes as JSON to standard output. It leaves a process behind that holds the output
open: whether that is ended with it shows in the output's end.
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
    """Raise what the C library reports."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _call(facts: Facts, name: str, *arguments: int) -> None:
    """A system call: that it is refused is what counts, not that it makes no sense."""
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
    """To get the descriptor is the success; whether there is room is another matter."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _write_and_remove(path: str) -> None:
    """Where a success would be one on the machine itself, it must do no harm."""
    _write(path)
    os.unlink(path)  # noqa: PTH108 - as a program would


def _socket(family: int, kind: int = socket.SOCK_STREAM) -> None:
    socket.socket(family, kind).close()


def _connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.connect(address)


def _own_program(folder: str) -> None:
    """A program that was written by the command itself."""
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
        raise PermissionError(errno.EACCES, "it can't be run")


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
    "read the passwords of the machine": lambda _: _read("/etc/shadow"),
    "write in a place that it may read": lambda facts: _write(facts["readable"] + "/written"),
    "write among the programs of the machine": lambda _: _write_and_remove("/usr/sideband-attempt"),
    "write in the machine's settings": lambda _: _write("/proc/sys/kernel/core_pattern"),
    "write outside its places": lambda facts: _write(facts["open"] + "/written"),
    "write among the devices": lambda _: _write_and_remove("/dev/sideband-attempt"),
    "run a program that it has written in a place": lambda facts: _own_program(facts["writable"]),
    "run a program that it has written in its temporary folder": lambda _: _own_program(os.environ["TMPDIR"]),
    "open an IPv4 socket": lambda _: _socket(socket.AF_INET),
    "open an IPv6 socket": lambda _: _socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "open a netlink socket": lambda _: _socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "open a packet socket": lambda _: _socket(socket.AF_PACKET, socket.SOCK_RAW),
    "open a socket to the machine's host": lambda _: _socket(40),
    "reach a service by its abstract name": lambda facts: _connect("\0" + facts["abstract"]),
    "reach a service by its path": lambda facts: _connect(facts["service"]),
    "signal the host": lambda facts: os.kill(facts["host"], 0),
    "trace": lambda facts: _call(facts, "ptrace", _PTRACE_SEIZE, os.getppid(), 0, 0),
    "read the memory of others": lambda facts: _call(facts, "process_vm_readv", os.getppid(), 0, 0, 0, 0, 0),
    "take a descriptor of others": lambda facts: _call(facts, "pidfd_getfd", 0, 0, 0),
    "make a process in a namespace": _clone,
    "make a namespace": lambda facts: _call(facts, "unshare", _CLONE_NEWUSER),
    "mount": lambda facts: _call(facts, "mount", 0, 0, 0, 0, 0),
    "unmount": lambda facts: _call(facts, "umount2", 0, 0),
    "change its root": lambda facts: _call(facts, "chroot", 0),
    "load code into the kernel": lambda facts: _call(facts, "bpf", 0, 0, 0),
    "measure the machine": lambda facts: _call(facts, "perf_event_open", 0, 0, 0, 0, 0),
    "use keys of the kernel": lambda facts: _call(facts, "keyctl", 0, 0, 0, 0, 0),
    "use io_uring": lambda facts: _call(facts, "io_uring_setup", 1, 0),
    "use userfaultfd": lambda facts: _call(facts, "userfaultfd", 0),
    "set the clock": lambda facts: _call(facts, "clock_settime", 0, 0),
    "type into a terminal": _type_ahead,
    "outlive the host": lambda _: _demand(_libc().prctl(1, 0, 0, 0, 0)),
    "become root": lambda _: os.setuid(0) if os.getuid() else _demand(_libc().sethostname(b"x", 1)),
}

MUST_FAIL_IN_NAMESPACES: dict[str, Attempt] = {
    "learn whether a file exists": lambda facts: os.stat(facts["secret"]),  # noqa: PTH116 - as a program would
    "see the processes of the machine": lambda facts: os.stat(f"/proc/{facts['host']}/stat"),  # noqa: PTH116
}
# The first process of a namespace takes no signal from inside that it does not want; a keeper elsewhere would.
MUST_FAIL_WITHOUT_NAMESPACES: dict[str, Attempt] = {
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
        raise OSError("it ended otherwise")


def _pair(_: Facts) -> None:
    for end in socket.socketpair():
        end.close()


MUST_WORK: dict[str, Attempt] = {
    "read a place": lambda facts: _read(facts["readable"] + "/" + facts["file"]),
    "write in a place": lambda facts: _write(facts["writable"] + "/written"),
    "write in its temporary folder": lambda _: _write(os.environ["TMPDIR"] + "/written"),
    "use the null device": lambda _: _write("/dev/null"),
    "run a program of the machine": _run_program,
    "make a pair of sockets": _pair,
}


def _try_all(attempts: dict[str, Attempt], facts: Facts) -> dict[str, str | None]:
    """How each ended: ``None`` for success, else what stopped it."""
    outcomes: dict[str, str | None] = {}
    for name, attempt in attempts.items():
        try:
            attempt(facts)
        except Exception as error:  # noqa: BLE001 - whatever stopped it is the answer
            outcomes[name] = f"{type(error).__name__}: {error}"
        else:
            outcomes[name] = None
    return outcomes


def _leave_behind() -> None:
    """A process of its own session, whose parent has ended, that stays until it is ended."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        signal.pause()


def main() -> None:
    """Try everything, and say how it went."""
    facts = json.loads(open(0, "rb", buffering=0, closefd=False).readline())  # noqa: SIM115 - the rest stays
    forbidden = dict(MUST_FAIL)
    forbidden.update(MUST_FAIL_IN_NAMESPACES if facts["namespaces"] else MUST_FAIL_WITHOUT_NAMESPACES)
    if facts["process_limit"]:
        forbidden.update(MUST_FAIL_WITH_PROCESS_LIMIT)
    report = {"must_work": _try_all(MUST_WORK, facts), "must_fail": _try_all(forbidden, facts)}
    _leave_behind()
    print(json.dumps(report), flush=True)
    # The host looks at what the kernel says about this process before it ends its input.
    os.read(0, 1)


if __name__ == "__main__":
    main()
