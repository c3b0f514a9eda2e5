"""The end of a call, which one task waits for until a deadline."""

import anyio
import pytest
from sideband.workers._ending import Ending

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def ending(anyio_backend):
    return Ending(on_asyncio=anyio_backend == "asyncio")


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
