"""A crashed worker fails only its own calls, and leaks no resources of the host."""

import os
import random
import signal

import pytest

NAMES = ("ada", "bob", "cleo", "dan", "eve")
CALLS = 20
CRASHES = 40
FIRST_USER = "root" if os.geteuid() == 0 else "user"

TOOLS = """
import asyncio, ctypes, os

@tool
async def ping() -> str:
    return "pong"

@tool
async def hold() -> str:
    return await crash.wait()

@tool
async def end(how: str) -> None:
    if how == "exit":
        os._exit(3)
    if how == "fault":
        ctypes.string_at(0)
    if how == "close":
        os.close(3)
    await asyncio.sleep(30)
"""


def open_with_workers(crashing, names):
    for name in names:
        crashing.skill(name, TOOLS)
    crashing.open()
    # The first call starts the processes that the host shares between workers.
    assert crashing.call(f"{names[0]}.ping") == "pong"
    assert crashing.answer(crashing.ask(f"{names[0]}.end", how="exit"))["code"] == "worker.exited"
    return {name: crashing.worker(name) for name in names}


def test_killed_worker_fails_only_its_own_calls(make_host, backend):
    crashing = make_host(backend=backend)
    workers = open_with_workers(crashing, NAMES)
    for victim in random.Random(7).sample(NAMES, 3):
        calls = {name: [crashing.ask(f"{name}.hold", timeout=60) for _ in range(CALLS)] for name in NAMES}
        crashing.until_waiting(len(NAMES) * CALLS)
        workers[victim].signal(signal.SIGKILL)
        for number in calls.pop(victim):
            answer = crashing.answer(number)
            assert answer["code"] == "worker.exited", answer
            assert "SIGKILL" in answer["message"]
        assert crashing.answers == {}
        workers[victim] = crashing.worker(victim)
        crashing.command(release=True)
        for number in (number for numbers in calls.values() for number in numbers):
            assert crashing.answer(number)["output"] == "released"
    crashing.close()
    crashing.check_no_survivors()


@pytest.mark.parametrize(
    ("who", "tier"), [(FIRST_USER, "full"), pytest.param("user", "no-namespaces", marks=pytest.mark.long)]
)
def test_repeated_crashes_leak_no_resources(make_host, who, tier):
    crashing = make_host(who, tier)
    open_with_workers(crashing, NAMES[:2])
    chance = random.Random(3)

    def crash(times):
        for _ in range(times):
            (how,) = chance.choices(["exit", "fault", "close"], [10, 10, 1])
            answer = crashing.answer(crashing.ask(f"{chance.choice(NAMES[:2])}.end", how=how))
            assert answer["code"] == "worker.exited", answer
        for name in NAMES[:2]:
            assert crashing.call_again(f"{name}.ping") == "pong"

    # Lazily created resources and caches exist after a few crashes.
    crash(20)
    descriptors, processes, memory = crashing.descriptors(), len(crashing.below), crashing.memory()
    groups = len(crashing.groups())
    crash(CRASHES)
    # The descriptors of the last worker may still be open for a moment.
    assert crashing.eventually(lambda: crashing.descriptors() <= descriptors)
    assert len(crashing.below) == processes
    assert len(crashing.groups()) == groups
    assert crashing.memory() - memory < 8 << 20
    crashing.close()
    crashing.check_no_survivors()
    assert crashing.groups() == []
    assert list(crashing.temporary.iterdir()) == []
