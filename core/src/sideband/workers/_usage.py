"""What a process uses, read from the kernel's own accounts."""

from __future__ import annotations

import os
from pathlib import Path

from ..sandboxing import WorkerUsage

__all__ = ["read_usage"]

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
# Positions after the name in /proc/PID/stat, which begins with the state.
_USER_TIME, _SYSTEM_TIME, _THREADS, _RESIDENT = 11, 12, 17, 21


def read_usage(pid: int) -> WorkerUsage | None:
    """What the process of that id uses; ``None`` if it has ended, or the system has no ``/proc``.

    Args:
        pid: the id of a process that has not been reaped, so that it can't be anyone else's.
    """
    folder = Path("/proc", str(pid))
    fields = _fields(folder)
    if fields is None:
        return None
    living = (folder, fields) if _lives(fields) else _living_thread(folder)
    if living is None:
        return None
    return WorkerUsage(
        memory=int(living[1][_RESIDENT]) * _PAGE,
        threads=int(fields[_THREADS]),
        files=_descriptors(living[0]),
        processor=(int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])) / _TICKS,
    )


def _fields(folder: Path) -> list[bytes] | None:
    """What the kernel says of a process or a thread, from its state on; ``None`` if it is gone."""
    try:
        status = (folder / "stat").read_bytes()
    except OSError:
        return None
    # The name may hold anything, parentheses too; the last one ends it.
    return status[status.rindex(b")") + 2 :].split()


def _lives(fields: list[bytes]) -> bool:
    return fields[0] not in (b"Z", b"X")


def _living_thread(folder: Path) -> tuple[Path, list[bytes]] | None:
    """A thread of a process whose first thread has ended, and shows nothing of what the others use any more."""
    try:
        threads = os.listdir(folder / "task")  # noqa: PTH208  as below
    except OSError:
        return None
    for thread in threads:
        fields = _fields(folder / "task" / thread)
        if fields is not None and _lives(fields):
            return folder / "task" / thread, fields
    return None


def _descriptors(folder: Path) -> int | None:
    try:
        return len(os.listdir(folder / "fd"))  # noqa: PTH208  called often; pathlib makes an object of each
    except OSError:
        return None
