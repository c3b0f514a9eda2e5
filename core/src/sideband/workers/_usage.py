"""Read the resource usage of a process from ``/proc``."""

from __future__ import annotations

import os
from pathlib import Path

from ..sandboxing import WorkerUsage

__all__ = ["read_usage"]

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
# Positions of fields in /proc/PID/stat, counted from the state, which follows the name.
_USER_TIME, _SYSTEM_TIME, _THREADS, _RESIDENT = 11, 12, 17, 21


def read_usage(pid: int) -> WorkerUsage | None:
    """Return the usage of a process, or ``None`` if it has exited or the system has no ``/proc``.

    Args:
        pid: the id of a process that has not been reaped, so that the id cannot be reused.
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
    """Return the fields of ``stat`` of a process or thread, from its state on, or ``None`` if it does not exist."""
    try:
        status = (folder / "stat").read_bytes()
    except OSError:
        return None
    # The name may contain parentheses, so search for the last one.
    return status[status.rindex(b")") + 2 :].split()


def _lives(fields: list[bytes]) -> bool:
    return fields[0] not in (b"Z", b"X")


def _living_thread(folder: Path) -> tuple[Path, list[bytes]] | None:
    """Return a living thread of a process whose main thread has exited. The main thread no longer shows the usage."""
    try:
        threads = os.listdir(folder / "task")  # noqa: PTH208  see below
    except OSError:
        return None
    for thread in threads:
        fields = _fields(folder / "task" / thread)
        if fields is not None and _lives(fields):
            return folder / "task" / thread, fields
    return None


def _descriptors(folder: Path) -> int | None:
    try:
        return len(os.listdir(folder / "fd"))  # noqa: PTH208  called often, and pathlib creates an object for each name
    except OSError:
        return None
