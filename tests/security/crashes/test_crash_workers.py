"""A worker that is killed takes its own calls with it, and nobody else's."""

import random
import signal

NAMES = ("ada", "bob", "cleo", "dan", "eve")
CALLS = 20

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
    # What a host starts once for all of its workers begins with the first call.
    assert crashing.call(f"{names[0]}.ping") == "pong"
    assert crashing.answer(crashing.ask(f"{names[0]}.end", how="exit"))["code"] == "worker.exited"
    return {name: crashing.worker(name) for name in names}


def test_of_100_calls_in_5_workers_those_of_the_killed_one_fail_and_no_others(make_host, backend):
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
        crashing.tell(release=True)
        for number in (number for numbers in calls.values() for number in numbers):
            assert crashing.answer(number)["output"] == "released"
    crashing.close()
    crashing.nothing_survives()


def test_a_hundred_crashes_leave_nothing_behind_in_the_host(make_host, who, tier):
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

    # What is made once, and caches, are there after some of them.
    crash(20)
    descriptors, processes, memory = crashing.descriptors(), len(crashing.below), crashing.memory()
    groups = len(crashing.groups())
    crash(100)
    assert crashing.descriptors() == descriptors
    assert len(crashing.below) == processes
    assert len(crashing.groups()) == groups
    assert crashing.memory() - memory < 16 << 20
    crashing.close()
    crashing.nothing_survives()
    assert crashing.groups() == []
    assert list(crashing.temporary.iterdir()) == []
