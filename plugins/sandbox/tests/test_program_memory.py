"""Shared memory and message queues of the machine are out of reach of programs."""

import ctypes
import json
import os

import pytest

pytestmark = pytest.mark.anyio

ATTEMPTS = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_long
identifier, key, queue = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
failed = {
    "attach a segment": libc.shmat(identifier, None, 0o10000) == -1,
    "find a segment": libc.shmget(key, 0, 0) == -1,
    "find semaphores": libc.semget(key, 0, 0) == -1,
    "find a queue": libc.msgget(key, 0) == -1,
    "open a queue": libc.mq_open(queue, os.O_RDONLY) == -1,
}
print(json.dumps([name for name, stopped in failed.items() if not stopped]))
"""


@pytest.fixture
def shared():
    """Create shared memory, semaphores and queues, open to every user. Return an ID, a key and a name."""
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x5B000000 | os.getpid() & 0xFFFFFF
    name = f"/sideband-{os.getpid()}"
    created = 0o1666
    segment, semaphores, queue = (
        libc.shmget(key, 4096, created),
        libc.semget(key, 1, created),
        libc.msgget(key, created),
    )
    descriptor = libc.mq_open(name.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    assert -1 not in (segment, semaphores, queue, descriptor)
    try:
        yield segment, key, name
    finally:
        libc.shmctl(segment, 0, None)
        libc.semctl(semaphores, 0, 0)
        libc.msgctl(queue, 0, None)
        libc.mq_unlink(name.encode())
        os.close(descriptor)


async def test_program_has_shared_memory_only_in_its_own_namespace(run_python, tier):
    code = "import ctypes; print(ctypes.CDLL(None).shmget(0, 4096, 0o600) != -1)"
    assert (await run_python(code))[1] == ("True\n" if tier == "full" else "False\n")


async def test_program_cannot_reach_shared_memory_or_queues_of_the_machine(run_python, shared):
    code, output, errors = await run_python(ATTEMPTS, *map(str, shared))
    assert code == 0, errors
    assert json.loads(output) == []
