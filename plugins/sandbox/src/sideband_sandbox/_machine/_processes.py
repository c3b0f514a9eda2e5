"""Helpers for process IDs, user IDs and child processes."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import anyio

# No known allocator uses this range (the kernel's user IDs end at 2³² - 2).
_FIRST_UID = 0x70000000
_UID_COUNT = 0x0FFFFFFE


def fresh_uid() -> int:
    """Return a random user ID from an unused range; the probability of a collision is one in a quarter of a billion."""
    return _FIRST_UID + secrets.randbelow(_UID_COUNT)


def pid_of(handle: int) -> int:
    """Return the process ID behind a pidfd, or 0 if it is not visible to this process."""
    for line in Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii").splitlines():
        if line.startswith("Pid:"):
            return max(0, int(line[4:]))
    return 0


async def wait_for_end(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child of the host to exit, and reap it. Return its exit code."""
    if process.poll() is None:
        handle = os.pidfd_open(process.pid)
        try:
            await anyio.wait_readable(handle)
        finally:
            os.close(handle)
    return process.wait()
