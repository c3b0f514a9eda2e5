"""Processes killed or stopped in any order: none survives its host, no resource leaks, and the next call works."""

import itertools
import os
import random
import signal
import time

import pytest

FIRST_USER = "root" if os.geteuid() == 0 else "user"
USERS = ["root", "user"] if os.geteuid() == 0 else ["user"]


def half(first):
    """Run with each user on one tier. The other half of the combinations, which other tests have, runs as `long`."""
    combinations = itertools.product(enumerate(USERS), enumerate(["full", "no-namespaces"]))
    marks = [pytest.mark.long] if len(USERS) > 1 else []
    return pytest.mark.parametrize(
        ("who", "tier"),
        [
            pytest.param(who, tier, marks=[] if (user + place) % 2 == first else marks)
            for (user, who), (place, tier) in combinations
        ],
    )


TOOLS = """
import asyncio

@tool
async def ping() -> str:
    return "pong"

@tool
async def write() -> str:
    try:
        return str(await http.get("http://127.0.0.1:1/"))
    except OpError:
        return "recorded"

@tool
async def hold() -> str:
    return await crash.wait()

@tool
async def spin() -> None:
    while True:
        pass
"""

HANGS = """
while True:
    pass

@tool
async def ping() -> str:
    return "pong"
"""


def check_next_host(crashing):
    """Check that the last host left nothing behind, and that the next one works."""
    crashing.check_no_survivors()
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    # A host that writes nothing keeps the file of a dead host without open effects: its outcomes may not be on disk.
    assert crashing.call("one.write") == "recorded"
    crashing.close()
    crashing.check_no_survivors()
    assert list(crashing.temporary.iterdir()) == []
    if crashing.groups():  # the kernel keeps a group as long as a process in it is ending; a later host removes it
        crashing.open()
        crashing.close()
    assert crashing.groups() == []
    assert list(crashing.home.glob("ledger/hosts/*")) == []
    assert {path.name for path in crashing.home.iterdir()} <= {"cache", "envs", "ledger", "sdk", "skills", "store"}
    for folder in ("sdk", "skills"):
        names = [path.name for path in (crashing.home / folder).iterdir()]
        assert all(len(name) == 64 for name in names), names


@pytest.fixture
def start(make_host):
    """Return a function that creates a home with the skills of these tests."""

    def start(*of):
        crashing = make_host(*of)
        for name in ("one", "two"):
            crashing.skill(name, TOOLS)
        crashing.skill("hangs", HANGS)
        return crashing

    return start


def open_busy(crashing):
    """Open a host with one worker that spins, and another that waits for an op."""
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    crashing.ask("two.hold")
    crashing.until_waiting(1)
    crashing.ask("one.spin")


def works(crashing):
    """Return whether calls of both skills work; each is repeated once if it used a worker that was exiting."""
    return {crashing.call_again(f"{name}.ping") for name in ("one", "two")} == {"pong"}


def kill(crashing):
    crashing.kill()
    assert crashing.ended() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("who", "tier", "backend"),
    [
        (FIRST_USER, "full", "asyncio"),
        (FIRST_USER, "no-namespaces", "trio"),
        ("user", "full", "trio"),
        ("user", "no-namespaces", "asyncio"),
    ],
)
def test_workers_end_with_a_killed_host(start, who, tier, backend):
    crashing = start(who, tier, backend)
    open_busy(crashing)
    kill(crashing)
    check_next_host(crashing)


@half(1)
def test_stopped_processes_end_with_a_killed_host(start, who, tier):
    crashing = start(who, tier)
    open_busy(crashing)
    for process in crashing.below:
        process.signal(signal.SIGSTOP)
    kill(crashing)
    check_next_host(crashing)


@half(0)
@pytest.mark.parametrize("seed", range(2))
def test_processes_stopped_or_killed_earlier_end_with_a_killed_host(start, who, tier, seed):
    chance = random.Random(f"{who}-{tier}-{seed}")
    crashing = start(who, tier)
    open_busy(crashing)
    for process in crashing.below:
        number = chance.choice([None, signal.SIGSTOP, signal.SIGKILL])
        if number is not None:
            process.signal(number)
    kill(crashing)
    check_next_host(crashing)


@half(1)
def test_starting_workers_end_with_a_killed_host(start, who, tier):
    chance = random.Random(11)
    crashing = start(who, tier)
    for _ in range(3):
        crashing.open()
        for name in ("one.ping", "two.ping", "hangs.ping"):
            crashing.ask(name)
        time.sleep(chance.uniform(0, 0.4))
        kill(crashing)
        crashing.check_no_survivors()
    check_next_host(crashing)


@half(0)
def test_calls_work_after_any_two_descendants_are_killed(start, who, tier):
    crashing = start(who, tier)
    crashing.open()
    assert works(crashing)
    count = len(crashing.below)

    def restored():
        """Return the descendants once calls work and all of them have been replaced."""
        return works(crashing) and len(below := crashing.below) == count and below

    # Recording the crash opens files that remain open.
    crashing.below[-1].signal(signal.SIGKILL)
    below = crashing.eventually(restored)
    assert below, crashing.names()
    descriptors = crashing.descriptors()
    for places in [*itertools.combinations(range(count), 1), *itertools.permutations(range(count), 2)]:
        for place in places:
            below[place].signal(signal.SIGKILL)
        below = crashing.eventually(restored)
        assert below, crashing.names()
        assert crashing.eventually(lambda: crashing.descriptors() <= descriptors), crashing.descriptors() - descriptors
    crashing.close()
    check_next_host(crashing)


@half(1)
def test_killed_descendant_fails_its_calls(start, who, tier):
    crashing = start(who, tier)
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    for place in range(len(crashing.below)):
        number = crashing.ask("one.hold", timeout=60)
        crashing.until_waiting(1)
        crashing.below[place].signal(signal.SIGKILL)
        assert crashing.answer(number, 10)["code"] == "worker.exited"
        assert crashing.call_again("one.ping") == "pong"
    crashing.close()
    check_next_host(crashing)


@half(0)
def test_worker_killed_during_its_start_fails_only_its_call(start, who, tier):
    crashing = start(who, tier)
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    before = crashing.below

    def kill_all():
        for process in crashing.below:
            if process not in before:
                process.signal(signal.SIGKILL)

    for _ in range(5):
        number = crashing.ask("hangs.ping", timeout=60)
        # A worker that is killed before it is ready is replaced once.
        assert crashing.eventually(lambda of=number: kill_all() or crashing.has_answer(of))
        assert crashing.answer(number)["code"] in {"worker.exited", "worker.start"}
        assert crashing.call("one.ping") == "pong"
    assert crashing.eventually(lambda: crashing.below == before)
    crashing.close()
    check_next_host(crashing)


@half(1)
def test_stopped_worker_is_replaced(start, who, tier):
    crashing = start(who, tier)
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    worker, count = crashing.worker("two"), len(crashing.below)
    worker.signal(signal.SIGSTOP)
    assert crashing.answer(crashing.ask("two.ping", timeout=0.5))["code"] == "call.timeout"
    assert crashing.call("two.ping") == "pong"
    assert crashing.eventually(lambda: not worker.is_alive)
    assert crashing.eventually(lambda: len(crashing.below) == count)
    crashing.close()
    check_next_host(crashing)


def test_host_with_a_stopped_descendant_starts_workers_and_closes(start):
    crashing = start()
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    count = len(crashing.below)
    crashing.close()
    for place in range(count):
        crashing.open()
        assert crashing.call("one.ping") == "pong"
        crashing.below[place].signal(signal.SIGSTOP)
        assert crashing.call("two.ping", timeout=40) == "pong"
        crashing.close()
        check_next_host(crashing)
