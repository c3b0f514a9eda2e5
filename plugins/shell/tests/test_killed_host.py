"""Programs in the background of a host that is killed."""

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from sideband.ledger import query
from sideband_shell import ShellProgramUnknown

pytestmark = pytest.mark.anyio

HARNESS = Path(__file__).with_name("harness_killed.py")


async def until_dead(pid):
    """Wait until a process has ended. It is not a child of the test, and may be a zombie of another process."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with anyio.fail_after(30):
        await anyio.wait_readable(handle)
    os.close(handle)


def killed(home, when):
    command = [sys.executable, str(HARNESS), str(home), when]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    return done.stdout.split()


async def test_program_ends_with_a_host_that_is_killed_and_its_id_is_unknown_afterwards(home, open_host, new_session):
    pid, program = killed(home, "after")
    await until_dead(int(pid))
    async with open_host() as host:
        with pytest.raises(ShellProgramUnknown) as caught:
            await new_session(host)("output", program=program)
    assert "even if it is killed" in caught.value.hint


async def test_start_that_was_not_recorded_is_reported_as_unknown_and_not_repeated(home, open_host):
    (pid,) = killed(home, "before")
    await until_dead(int(pid))
    async with open_host():
        pass
    assert [one.status for one in await query(home / "ledger", op="shell.start")] == ["unknown"]
