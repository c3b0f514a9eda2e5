"""Light tasks, which behave like tasks of a task group."""

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


async def test_exception_of_a_task_cancels_the_group_and_is_raised():
    with pytest.raises(BaseExceptionGroup) as caught:
        await start_what_fails()
    assert caught.group_contains(Defect)


async def test_cancelled_group_cancels_its_tasks_and_waits_for_their_cleanup():
    scope, steps = anyio.CancelScope(), []

    async def serve():
        with scope:
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.lowlevel.checkpoint()
                    steps.append("cleaned up")

    async with anyio.create_task_group() as group:
        LightTasks(group, scope.cancel).start(serve)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert steps == ["cleaned up"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)  # on trio, the group does this
async def test_task_started_after_cancellation_is_cancelled():
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
