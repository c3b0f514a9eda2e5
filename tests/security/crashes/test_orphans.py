"""Whatever is killed, in any order: nothing survives its host, nothing leaks, and the next call works."""

import itertools
import random
import signal
import time

import pytest

TOOLS = """
import asyncio

@tool
async def ping() -> str:
    return "pong"

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


def is_whole(crashing):
    """Nothing is left of the last host, and the next one works."""
    crashing.nothing_survives()
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    crashing.close()
    crashing.nothing_survives()
    assert list(crashing.temporary.iterdir()) == []
    assert crashing.groups() == []
    assert list(crashing.home.glob("ledger/hosts/*")) == []
    assert {path.name for path in crashing.home.iterdir()} <= {"envs", "ledger", "sdk", "skills", "store"}
    for folder in ("sdk", "skills"):
        names = [path.name for path in (crashing.home / folder).iterdir()]
        assert all(len(name) == 64 for name in names), names


@pytest.fixture
def start(make_host):
    """A home with the skills of these tests."""

    def start(*of):
        crashing = make_host(*of)
        for name in ("one", "two"):
            crashing.skill(name, TOOLS)
        crashing.skill("hangs", HANGS)
        return crashing

    return start


def open_busy(crashing):
    """A host with one worker that spins, and another that waits for an op."""
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    crashing.ask("two.hold")
    crashing.until_waiting(1)
    crashing.ask("one.spin")


def works(crashing):
    """The next calls do, though the first of each skill may still have met a worker that was going down."""
    return {crashing.call_again(f"{name}.ping") for name in ("one", "two")} == {"pong"}


def kill(crashing):
    crashing.kill()
    assert crashing.ended() == -signal.SIGKILL


def test_the_workers_of_a_host_that_is_killed_end_with_it(start, who, tier, backend):
    crashing = start(who, tier, backend)
    open_busy(crashing)
    kill(crashing)
    is_whole(crashing)


def test_what_was_stopped_ends_with_a_host_that_is_killed_too(start, who, tier):
    crashing = start(who, tier)
    open_busy(crashing)
    for process in crashing.below:
        process.signal(signal.SIGSTOP)
    kill(crashing)
    is_whole(crashing)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_stopped_or_killed_before_the_host_makes_no_difference(start, who, tier, seed):
    chance = random.Random(seed)
    crashing = start(who, tier)
    open_busy(crashing)
    for process in crashing.below:
        number = chance.choice([None, signal.SIGSTOP, signal.SIGKILL])
        if number is not None:
            process.signal(number)
    kill(crashing)
    is_whole(crashing)


def test_a_host_that_is_killed_while_workers_start_leaves_none(start, who, tier):
    chance = random.Random(11)
    crashing = start(who, tier)
    for _ in range(5):
        crashing.open()
        for name in ("one.ping", "two.ping", "hangs.ping"):
            crashing.ask(name)
        time.sleep(chance.uniform(0, 0.5))
        kill(crashing)
        crashing.nothing_survives()
    is_whole(crashing)


def test_whatever_is_killed_below_a_host_the_next_calls_work_and_nothing_leaks(start, who, tier):
    crashing = start(who, tier)
    crashing.open()
    assert works(crashing)
    count = len(crashing.below)
    # The record of it opens what stays open.
    crashing.below[-1].signal(signal.SIGKILL)
    assert crashing.eventually(lambda: works(crashing) and len(crashing.below) == count), crashing.names()
    descriptors = crashing.descriptors()
    for places in [*itertools.combinations(range(count), 1), *itertools.permutations(range(count), 2)]:
        below = crashing.below
        for place in places:
            below[place].signal(signal.SIGKILL)
        assert crashing.eventually(lambda: works(crashing) and len(crashing.below) == count), crashing.names()
        assert crashing.eventually(lambda: crashing.descriptors() == descriptors)
    crashing.close()
    is_whole(crashing)


def test_what_is_killed_below_a_host_fails_the_calls_that_it_carried(start, who, tier):
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
    is_whole(crashing)


def test_a_worker_that_is_killed_while_it_starts_fails_its_call_alone(start, who, tier):
    crashing = start(who, tier)
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    before = crashing.below
    for _ in range(5):
        number = crashing.ask("hangs.ping", timeout=60)
        (worker,) = crashing.eventually(lambda: [process for process in crashing.below if process not in before])
        worker.signal(signal.SIGKILL)
        assert crashing.answer(number)["code"] in {"worker.exited", "worker.start"}
        assert crashing.call("one.ping") == "pong"
    assert crashing.eventually(lambda: crashing.below == before)
    crashing.close()
    is_whole(crashing)


def test_a_worker_that_is_stopped_is_replaced(start, who, tier):
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
    is_whole(crashing)


def test_whatever_is_stopped_below_a_host_new_workers_start_and_it_ends_in_order(start):
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
        is_whole(crashing)
