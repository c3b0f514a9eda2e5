"""Processes and users of the machine, as the kernel counts them."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import anyio

# No known allocator of user ids hands these out (the kernel's range for them ends at 2³² - 2).
_FIRST_UID = 0x70000000
_UID_COUNT = 0x0FFFFFFE


def fresh_uid() -> int:
    """A user id that nothing else has, with odds of one in a quarter of a billion."""
    return _FIRST_UID + secrets.randbelow(_UID_COUNT)


def pid_of(handle: int) -> int:
    """The id of the process as this one sees it, 0 if it doesn't."""
    for line in Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii").splitlines():
        if line.startswith("Pid:"):
            return max(0, int(line[4:]))
    return 0


async def wait_for_end(process: subprocess.Popen[bytes]) -> int:
    """Reap a child of the host once it has ended. Returns how."""
    if process.poll() is None:
        handle = os.pidfd_open(process.pid)
        try:
            await anyio.wait_readable(handle)
        finally:
            os.close(handle)
    return process.wait()
