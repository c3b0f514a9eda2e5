"""Locks that programs hold on the user's folders do not delay a host."""

import subprocess
import sys

import anyio
import pytest

pytestmark = pytest.mark.anyio

# Needs only read access to the folder, and holds the lock until its input ends.
HOLDER = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lock():
    """Return a function that starts a process, which holds a lock on a folder until the test ends."""
    processes = []

    def start(folder):
        words = [sys.executable, "-c", HOLDER, folder]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout.readline() == b"locked\n"

    yield start
    for process in processes:
        process.communicate()


async def test_program_that_locks_a_folder_delays_neither_changes_nor_undo(host, files, place, lock):
    effects = []
    lock(place)
    with anyio.fail_after(60):
        await files.write(place / "x", content="x", on_effect=lambda report: effects.append(report.id))
        await files.copy(place / "x", target=str(place / "y"))
        await files.move(place / "y", target=str(place / "z"))
        await files.delete(place / "z")
        assert [step.error for step in await host.undo(await host.plan_undo(effects[0]))] == [None]
    assert list(place.iterdir()) == []
