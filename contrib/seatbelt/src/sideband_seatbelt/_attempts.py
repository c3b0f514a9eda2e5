"""The probe worker of macOS: makes attempts that must fail in every worker. UNTESTED there, like the whole tier.

Runs by path with ``-I -S`` and the standard library only, under the profile of a worker. Its argument is JSON: the
host's process ID, a folder that serves as a skill's snapshot, a world-writable folder, and the addresses of sockets
that the host has opened for it. It prints one line of JSON: the error of each attempt, ``null`` if it succeeded.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Facts = dict[str, Any]
Attempt = Callable[[Facts], object]

_CONTROL_KERNEL, _KERNEL_ARGUMENTS = 1, 49


class _AttemptImpossible(Exception):
    """The attempt is not possible on this machine, so it is left out of the report."""


def _connect(family: int, address: object) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.connect(address)  # type: ignore[arg-type]  # its type depends on the family


def _send(address: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"ping", address)


def _fork(_: Facts) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _spawn(_: Facts) -> None:
    program = next(path for path in ("/usr/bin/true", "/bin/true") if os.path.exists(path))  # noqa: PTH110
    os.waitpid(os.posix_spawn(program, ["true"], {}), 0)


def _arguments_of_host(facts: Facts) -> None:
    """Read the arguments and the environment of the host, like ``ps``."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "sysctl"):
        raise _AttemptImpossible
    name = (ctypes.c_int * 3)(_CONTROL_KERNEL, _KERNEL_ARGUMENTS, facts["host"])
    size = ctypes.c_size_t(1 << 20)
    buffer = ctypes.create_string_buffer(size.value)
    if libc.sysctl(name, 3, buffer, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _look_up_service(_: Facts) -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "bootstrap_look_up"):
        raise _AttemptImpossible
    registry, port = ctypes.c_uint.in_dll(libc, "bootstrap_port"), ctypes.c_uint(0)
    answer = libc.bootstrap_look_up(registry, b"com.apple.system.notification_center", ctypes.byref(port))
    if answer != 0:
        raise OSError(f"bootstrap_look_up returned {answer}")


MUST_FAIL: dict[str, Attempt] = {
    "read a file outside its folders": lambda _: Path("/etc/passwd").read_bytes(),
    "list the parent of its own folder": lambda facts: os.listdir(os.path.dirname(facts["snapshot"])),  # noqa: PTH120, PTH208
    "write to its own folder": lambda facts: Path(facts["snapshot"], "written").write_bytes(b""),
    "change a file of its own folder": lambda facts: Path(facts["snapshot"], "skill.py").write_bytes(b""),
    "change the mode of a file": lambda facts: Path(facts["snapshot"], "skill.py").chmod(0o600),
    "remove a file": lambda facts: Path(facts["snapshot"], "skill.py").unlink(),
    "write to a world-writable folder": lambda facts: Path(facts["open"], "written").write_bytes(b""),
    "connect to a server of the host": lambda facts: _connect(socket.AF_INET, ("127.0.0.1", facts["server"])),
    "connect to a unix socket of the host": lambda facts: _connect(socket.AF_UNIX, facts["local"]),
    "send a datagram": lambda facts: _send(("127.0.0.1", facts["datagrams"])),
    "fork": _fork,
    "start a program": _spawn,
    "signal the host": lambda facts: os.kill(facts["host"], 0),
    "read the arguments and environment of the host": _arguments_of_host,
    "look up a service of the system": _look_up_service,
}


def _event_loop(_: Facts) -> None:
    import asyncio  # noqa: PLC0415 - as in a skill

    async def main() -> None:
        await asyncio.gather(asyncio.sleep(0), asyncio.to_thread(os.getpid))

    asyncio.run(main())


def _modules(_: Facts) -> None:
    for name in ("decimal", "sqlite3", "ssl", "uuid", "zoneinfo"):
        importlib.import_module(name)


# These run first, because a successful attempt above would change the files that they read.
MUST_WORK: dict[str, Attempt] = {
    "read its own folder": lambda facts: Path(facts["snapshot"], "skill.py").read_bytes(),
    "run an event loop and a thread": _event_loop,
    "import modules of the standard library": _modules,
}


def _try_all(attempts: dict[str, Attempt], facts: Facts) -> dict[str, str | None]:
    outcomes: dict[str, str | None] = {}
    for name, attempt in attempts.items():
        try:
            attempt(facts)
        except _AttemptImpossible:
            continue
        except Exception as error:  # noqa: BLE001 - any error is a result
            outcomes[name] = f"{type(error).__name__}: {error}"
        else:
            outcomes[name] = None
    return outcomes


def main() -> None:
    """Make all attempts, and print the report."""
    facts: Facts = json.loads(sys.argv[1])
    report = {"must_work": _try_all(MUST_WORK, facts), "must_fail": _try_all(MUST_FAIL, facts)}
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
