"""The end of a call, which one task waits for until a deadline."""

import anyio
import pytest
from sideband.workers._ending import Deadlines, Ending

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
async def deadlines(anyio_backend):
    return Deadlines()


@pytest.fixture
def ending(deadlines):
    return Ending(deadlines)


async def test_wait_returns_when_it_comes(ending):
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ending.wait, anyio.current_time() + 60)
            await anyio.wait_all_tasks_blocked()
            ending.come()
            ending.come()
    assert ending.has_come


async def test_wait_returns_at_once_if_it_has_come(ending):
    ending.come()
    with anyio.fail_after(20):
        await ending.wait(anyio.current_time() + 60)


@pytest.mark.parametrize("seconds", [-1, 0.01])
async def test_wait_returns_at_the_deadline(ending, seconds):
    with anyio.fail_after(20):
        await ending.wait(anyio.current_time() + seconds)
    assert not ending.has_come


async def test_wait_can_be_cancelled_and_repeated(ending):
    with anyio.move_on_after(0.01) as scope:
        await ending.wait(anyio.current_time() + 60)
    assert scope.cancelled_caught
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ending.wait, anyio.current_time() + 60)
            await anyio.wait_all_tasks_blocked()
            ending.come()


async def test_each_wait_returns_at_its_own_deadline(deadlines):
    """They share one timer, which must ring for a later wait with an earlier deadline, and again for the others."""
    ended = []

    async def wait(seconds):
        await Ending(deadlines).wait(anyio.current_time() + seconds)
        ended.append(seconds)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for seconds in (0.1, 0.01, 0.05, 0.15):
                tasks.start_soon(wait, seconds)
    assert ended == [0.01, 0.05, 0.1, 0.15]


async def test_deadline_of_a_wait_that_has_returned_does_not_end_later_ones(deadlines):
    first, second = Ending(deadlines), Ending(deadlines)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first.wait, anyio.current_time() + 0.02)
            await anyio.wait_all_tasks_blocked()
            first.come()
        await second.wait(anyio.current_time() + 0.05)
    assert not second.has_come
    assert not deadlines._waiting  # which would keep the ends of all calls


async def test_waits_without_a_deadline_set_no_timer(anyio_backend, deadlines):
    with anyio.move_on_after(0.01):
        await Ending(deadlines).wait(float("inf"))
    assert deadlines._timer is None
