"""Turns: the steps of a worker's ops are delayed while other workers are busy."""

from itertools import pairwise
from time import perf_counter

import anyio
import pytest
from anyio.lowlevel import checkpoint
from sideband.workers._host_time import HostTime
from sideband.workers._turns import _ROUNDS, Turns

pytestmark = pytest.mark.anyio


def work():
    """Compute for longer than one turn allows."""
    end = perf_counter() + 0.0002
    while perf_counter() < end:
        pass


@pytest.fixture
def anyio_backend():
    """Use asyncio only, because turns do nothing on trio."""
    return "asyncio"


@pytest.fixture
def shares():
    time = HostTime()
    return time.share(), time.share()


class Rounds:
    """Counts the iterations of the event loop, and keeps the neighbor busy."""

    def __init__(self, neighbor=None):
        self.count = 0
        self._neighbor = neighbor

    async def run(self):
        while True:
            self.count += 1
            if self._neighbor is not None:
                self._neighbor.touch()
            await checkpoint()


async def steps_of(turns, rounds, *, coroutines):
    """Return the iteration in which each coroutine ran its step."""
    taken = []

    async def step():
        work()
        taken.append(rounds.count)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rounds.run)
        await checkpoint()
        async with anyio.create_task_group() as group:
            for _ in range(coroutines):
                group.start_soon(turns.run, step())
        tasks.cancel_scope.cancel()
    return taken


async def test_steps_are_several_iterations_apart_beside_a_busy_neighbor(shares):
    own, neighbor = shares
    taken = await steps_of(Turns(own), Rounds(neighbor), coroutines=12)
    assert len(taken) == 12
    assert all(later - earlier >= _ROUNDS - 1 for earlier, later in pairwise(taken))


async def test_steps_do_not_wait_without_a_busy_neighbor(shares):
    own, neighbor = shares
    neighbor.last_active -= 60
    taken = await steps_of(Turns(own), Rounds(), coroutines=12)
    assert len(set(taken)) == 1


async def test_waiting_steps_continue_when_the_neighbor_is_closed(shares):
    own, neighbor = shares
    turns, rounds = Turns(own), Rounds()
    neighbor.touch()
    taken = []

    async def step():
        work()
        taken.append(rounds.count)
        neighbor.close()

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(turns.run, step())
    assert len(taken) == 5


async def test_every_step_of_a_coroutine_waits_for_a_turn(shares):
    own, neighbor = shares
    turns, rounds = Turns(own), Rounds(neighbor)
    taken = []

    async def steps():
        for _ in range(3):
            work()
            taken.append(rounds.count)
            await checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rounds.run)
        await checkpoint()
        async with anyio.create_task_group() as group:
            group.start_soon(turns.run, steps())
            group.start_soon(turns.run, steps())
        tasks.cancel_scope.cancel()
    assert len(taken) == 6
    assert taken[-1] - taken[0] >= 5 * (_ROUNDS - 1)


async def test_results_and_exceptions_are_passed_through(shares):
    turns = Turns(shares[0])

    async def answer():
        await checkpoint()
        return 42

    async def fail():
        await checkpoint()
        raise LookupError("gone")

    assert await turns.run(answer()) == 42
    with pytest.raises(LookupError, match="gone"):
        await turns.run(fail())


async def test_coroutine_cancelled_while_waiting_for_a_turn_can_clean_up(shares):
    own, neighbor = shares
    turns, rounds = Turns(own), Rounds(neighbor)
    cleaned, started = [], anyio.Event()

    async def steps():
        try:
            while True:
                work()
                started.set()
                await checkpoint()
        finally:
            cleaned.append(True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rounds.run)
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(turns.run, steps())
            await started.wait()
            for _ in range(20 * _ROUNDS):
                await checkpoint()
            group.cancel_scope.cancel()
        tasks.cancel_scope.cancel()
    assert cleaned == [True] * 4


async def test_coroutine_without_a_turn_is_closed(shares):
    own, neighbor = shares
    turns = Turns(own)
    neighbor.touch()

    async def hog():
        work()

    async def late():
        raise AssertionError("it must not run")

    async with anyio.create_task_group() as group:
        group.start_soon(turns.run, hog())
        group.start_soon(turns.run, late())
        await checkpoint()
        group.cancel_scope.cancel()


async def test_long_step_is_charged(shares):
    own, _ = shares
    turns = Turns(own)

    async def long():
        end = perf_counter() + 0.05
        while perf_counter() < end:
            pass

    assert not own.is_spent
    await turns.run(long())
    assert own.is_spent
