"""What a process uses, read from the kernel's own accounts."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import frozen

__all__ = ["WorkerUsage", "read_usage"]

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
# Positions after the name in /proc/PID/stat, which begins with the state.
_USER_TIME, _SYSTEM_TIME, _THREADS, _RESIDENT = 11, 12, 17, 21


@frozen
class WorkerUsage:
    """What a process uses at one moment.

    Args:
        memory: resident bytes, shared ones included.
        threads: how many it has.
        files: open descriptors; ``None`` if that can't be seen.
        processor: seconds of processor time since its start.
    """

    memory: int
    threads: int
    files: int | None
    processor: float


def read_usage(pid: int) -> WorkerUsage | None:
    """What the process of that id uses; ``None`` if it has ended, or the system has no ``/proc``.

    Args:
        pid: the id of a process that has not been reaped, so that it can't be anyone else's.
    """
    folder = Path("/proc", str(pid))
    try:
        status = (folder / "stat").read_bytes()
    except OSError:
        return None
    # The name may hold anything, parentheses too; the last one ends it.
    fields = status[status.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    return WorkerUsage(
        memory=int(fields[_RESIDENT]) * _PAGE,
        threads=int(fields[_THREADS]),
        files=_descriptors(folder),
        processor=(int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])) / _TICKS,
    )


def _descriptors(folder: Path) -> int | None:
    try:
        return len(os.listdir(folder / "fd"))  # noqa: PTH208  called often; pathlib makes an object of each
    except OSError:
        return None
