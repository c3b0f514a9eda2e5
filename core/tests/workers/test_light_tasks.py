"""Tasks of the loop that are held together as those of a group are."""

import anyio
import pytest
from sideband.workers._light_tasks import LightTasks

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


class Defect(Exception):
    pass


async def fail():
    raise Defect


async def start_what_fails():
    async with anyio.create_task_group() as group:
        LightTasks(group, lambda: None).start(fail)
        await anyio.sleep_forever()


async def test_what_a_task_raises_ends_the_group_and_comes_out_of_it():
    with pytest.raises(BaseExceptionGroup) as caught:
        await start_what_fails()
    assert caught.group_contains(Defect)


async def test_a_group_that_is_cancelled_cancels_its_tasks_and_waits_for_what_they_still_do():
    scope, steps = anyio.CancelScope(), []

    async def serve():
        with scope:
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.lowlevel.checkpoint()
                    steps.append("ended in order")

    async with anyio.create_task_group() as group:
        LightTasks(group, scope.cancel).start(serve)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert steps == ["ended in order"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)  # elsewhere the group sees to it
async def test_a_task_that_is_started_after_the_group_was_cancelled_does_not_go_on():
    scopes, ended = [], anyio.Event()

    async def serve(scope):
        with scope:
            await anyio.sleep_forever()
        ended.set()

    async with anyio.create_task_group() as group:
        tasks = LightTasks(group, lambda: [scope.cancel() for scope in scopes])
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.fail_after(10):
            await anyio.wait_all_tasks_blocked()
            scopes.append(anyio.CancelScope())
            tasks.start(serve, scopes[0])
            await ended.wait()
