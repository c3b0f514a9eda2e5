"""The skill of the probe worker: tries actions that must fail in every worker, and actions that must succeed.

It is copied into a folder that serves as a skill's snapshot, and called like any tool, in a real worker of the zygote
under test. It uses the standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

Facts = dict[str, Any]
Attempt = Callable[[Facts], object]

_PTRACE_SEIZE = 0x4206
_CLONE_NEWUSER = 0x10000000
_SIGCHLD = 17


class _NotTried(Exception):
    """The attempt is not possible on this machine, so it is left out of the report."""


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _demand(result: int) -> int:
    """Raise ``OSError`` if a C function failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:  # noqa: PTH123 - as a skill would
        return stream.read(16)


def _write(path: str) -> None:
    """Open a file for writing. This alone counts as success, whether or not the disk has space."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _connect(family: int, address: object) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.connect_ex(address)  # type: ignore[arg-type]  # creating the socket counts as success


def _child(pid: int) -> None:
    """Exit at once in the child; reap it in the parent."""
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _spawn(_: Facts) -> None:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def _subprocess(_: Facts) -> None:
    import subprocess  # noqa: PLC0415 - after the lockdown, as in a skill

    subprocess.run(["/bin/true"], check=False)


def _execute(_: Facts) -> None:
    """Execute a missing program: the error is EPERM only if the system call itself is refused."""
    try:
        os.execv("/sideband-no-such-program", ["none"])  # noqa: S606 - the point is to try
    except OSError as error:
        if error.errno == errno.EPERM:
            raise


def _datagram_pair(_: Facts) -> None:
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.close()
    right.close()


def _clone_raw(_: Facts) -> None:
    number = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)
    if number is None:
        raise _NotTried
    _child(_demand(_libc().syscall(number, _SIGCHLD, 0, 0, 0, 0)))


def _signal_host(facts: Facts) -> None:
    """Signal the host. In namespaces its number may also be that of the first process, or of this one."""
    if facts["namespaces"] and facts["host"] in (1, os.getpid()):
        raise ProcessLookupError("the host has no number in this process namespace")
    os.kill(facts["host"], 0)


def _trace(facts: Facts) -> None:
    _demand(_libc().ptrace(_PTRACE_SEIZE, facts["host"], 0, 0))


def _read_memory(facts: Facts) -> None:
    """Read zero bytes at address zero: the kernel checks permission before it looks at the range."""
    here = (ctypes.c_size_t * 2)(0, 0)
    _demand(_libc().process_vm_readv(facts["host"], here, 1, here, 1, 0))


def _outlive(_: Facts) -> None:
    _demand(_libc().prctl(1, 0, 0, 0, 0))


def _own_threads(count: int) -> None:
    import threading  # noqa: PLC0415 - after the lockdown, as in a skill

    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(count)]
    started = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    finally:
        stop.set()
        for thread in started:
            thread.join()


MUST_FAIL: dict[str, Attempt] = {
    "read a file outside its folders": lambda _: _read("/etc/passwd"),
    "list the root folder": lambda _: os.listdir("/"),  # noqa: PTH208 - as a skill would
    "list the parent of its own folder": lambda facts: os.listdir(os.path.dirname(facts["snapshot"])),  # noqa: PTH120, PTH208
    "write to its own folder": lambda facts: _write(facts["snapshot"] + "/written"),
    "change a file of its own folder": lambda facts: _write(facts["snapshot"] + "/" + facts["file"]),
    "truncate a file of its own folder": lambda facts: os.truncate(facts["snapshot"] + "/" + facts["file"], 0),
    "change the mode of a file": lambda facts: Path(facts["snapshot"], facts["file"]).chmod(0o600),
    "remove a file": lambda facts: Path(facts["snapshot"], facts["file"]).unlink(),
    "write to a world-writable folder": lambda facts: _write(facts["open"] + "/written"),
    "read the environment of the host": lambda facts: _read(f"/proc/{facts['host']}/environ"),
    "read its own memory map": lambda _: _read("/proc/self/maps"),
    "open an IPv4 socket": lambda _: _connect(socket.AF_INET, ("127.0.0.1", 9)),
    "open an IPv6 socket": lambda _: _connect(socket.AF_INET6, ("::1", 9)),
    "open a unix socket": lambda _: _connect(socket.AF_UNIX, "\0sideband-probe"),
    "open a netlink socket": lambda _: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close(),
    "create a datagram socket pair": _datagram_pair,
    "fork": lambda _: _child(os.fork()),
    "clone": _clone_raw,
    "start a program with posix_spawn": _spawn,
    "start a program with subprocess": _subprocess,
    "execute a program": _execute,
    "signal the host": _signal_host,
    "signal all processes": lambda _: os.kill(-1, 0),
    "trace the host": _trace,
    "read the memory of the host": _read_memory,
    "change the limits of the host": lambda facts: resource.prlimit(facts["host"], resource.RLIMIT_NOFILE),
    "outlive the host": _outlive,
    "create a namespace": lambda _: _demand(_libc().unshare(_CLONE_NEWUSER)),
    "become root": lambda _: os.setuid(0),
}

MUST_FAIL_IN_NAMESPACES: dict[str, Attempt] = {
    "learn whether a file exists": lambda _: os.stat("/etc/passwd"),  # noqa: PTH116 - as a skill would
    "see /proc": lambda _: os.stat("/proc/self"),  # noqa: PTH116 - as a skill would
    "see the machine's programs": lambda _: os.stat("/bin/sh"),  # noqa: PTH116 - as a skill would
}

MUST_FAIL_WITH_THREAD_LIMIT: dict[str, Attempt] = {
    "start more threads than its limit": lambda facts: _own_threads(facts["threads"] + 1),
}


def _event_loop(_: Facts) -> None:
    import asyncio  # noqa: PLC0415 - after the lockdown, as in a skill

    async def main() -> None:
        await asyncio.gather(asyncio.sleep(0), asyncio.to_thread(os.getpid))

    asyncio.run(main())


def _modules(_: Facts) -> None:
    for name in ("decimal", "sqlite3", "ssl", "uuid", "zoneinfo"):
        importlib.import_module(name)


MUST_WORK: dict[str, Attempt] = {
    "read its own folder": lambda facts: _read(facts["snapshot"] + "/" + facts["file"]),
    "run an event loop and a thread": _event_loop,
    "import modules of the standard library": _modules,
}


def _try_all(attempts: dict[str, Attempt], facts: Facts) -> dict[str, str | None]:
    """Return for each attempt the error that stopped it, or ``None`` if it succeeded."""
    outcomes: dict[str, str | None] = {}
    for name, attempt in attempts.items():
        try:
            attempt(facts)
        except _NotTried:
            continue
        except Exception as error:  # noqa: BLE001 - any error is a result
            outcomes[name] = f"{type(error).__name__}: {error}"
        else:
            outcomes[name] = None
    return outcomes


async def attempt(**facts: Any) -> dict[str, dict[str, str | None]]:
    """Make all attempts.

    Args:
        facts: ``host`` (its process ID), ``snapshot`` (this folder), ``file`` (a file in it), ``open`` (a
            world-writable folder), ``namespaces`` and ``thread_limit`` (whether to try those attempts), ``threads``
            (the limit).

    Returns:
        ``must_fail`` and ``must_work``: for each attempt the error that stopped it, ``None`` if it succeeded.
    """
    import asyncio  # noqa: PLC0415 - as a skill would

    forbidden = dict(MUST_FAIL)
    if facts["namespaces"]:
        forbidden.update(MUST_FAIL_IN_NAMESPACES)
    if facts["thread_limit"]:
        forbidden.update(MUST_FAIL_WITH_THREAD_LIMIT)
    # In a thread, because another event loop cannot run in the thread of a running one.
    must_work = await asyncio.to_thread(_try_all, MUST_WORK, facts)
    return {"must_work": must_work, "must_fail": await asyncio.to_thread(_try_all, forbidden, facts)}
