"""Ops of one worker go on by turns while other workers are busy, and as they come otherwise."""

from itertools import pairwise
from time import perf_counter

import anyio
import pytest
from anyio.lowlevel import checkpoint
from sideband.workers._host_time import HostTime
from sideband.workers._turns import _ROUNDS, Turns

pytestmark = pytest.mark.anyio


def work():
    """More than one turn allows."""
    end = perf_counter() + 0.0002
    while perf_counter() < end:
        pass


@pytest.fixture
def anyio_backend():
    """Elsewhere there are no turns."""
    return "asyncio"


@pytest.fixture
def shares():
    time = HostTime()
    return time.share(), time.share()


class Rounds:
    """Counts how often the loop goes round, and keeps the neighbour busy meanwhile."""

    def __init__(self, neighbour=None):
        self.count = 0
        self._neighbour = neighbour

    async def run(self):
        while True:
            self.count += 1
            if self._neighbour is not None:
                self._neighbour.touch()
            await checkpoint()


async def steps_of(turns, rounds, *, coroutines):
    """In which round each of them took its step."""
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


async def test_while_a_neighbour_is_busy_the_loop_goes_round_several_times_for_each_step(shares):
    own, neighbour = shares
    taken = await steps_of(Turns(own), Rounds(neighbour), coroutines=12)
    assert len(taken) == 12
    assert all(later - earlier >= _ROUNDS - 1 for earlier, later in pairwise(taken))


async def test_without_a_busy_neighbour_nothing_waits(shares):
    own, neighbour = shares
    neighbour.last_active -= 60
    taken = await steps_of(Turns(own), Rounds(), coroutines=12)
    assert len(set(taken)) == 1


async def test_who_waits_goes_on_once_the_neighbour_is_gone(shares):
    own, neighbour = shares
    turns, rounds = Turns(own), Rounds()
    neighbour.touch()
    taken = []

    async def step():
        work()
        taken.append(rounds.count)
        neighbour.close()

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(turns.run, step())
    assert len(taken) == 5


async def test_each_step_waits_and_not_only_the_first(shares):
    own, neighbour = shares
    turns, rounds = Turns(own), Rounds(neighbour)
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


async def test_results_and_errors_come_out_as_they_are(shares):
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


async def test_who_is_cancelled_while_it_waits_for_a_turn_can_clean_up(shares):
    own, neighbour = shares
    turns, rounds = Turns(own), Rounds(neighbour)
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


async def test_a_coroutine_that_never_had_a_turn_is_closed(shares):
    own, neighbour = shares
    turns = Turns(own)
    neighbour.touch()

    async def hog():
        work()

    async def late():
        raise AssertionError("it had no turn")

    async with anyio.create_task_group() as group:
        group.start_soon(turns.run, hog())
        group.start_soon(turns.run, late())
        await checkpoint()
        group.cancel_scope.cancel()


async def test_a_step_that_holds_up_everybody_is_charged(shares):
    own, _ = shares
    turns = Turns(own)

    async def long():
        end = perf_counter() + 0.05
        while perf_counter() < end:
            pass

    assert not own.is_spent
    await turns.run(long())
    assert own.is_spent
