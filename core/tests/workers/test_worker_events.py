"""What observers learn of workers: their start, and how they end."""

import pytest
from sideband.workers import WorkerExited, WorkerStartFailed

pytestmark = pytest.mark.anyio

TOOLS = """
    async def pid():
        return os.getpid()

    async def die():
        os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_start_and_end_of_each_worker_are_observed(make_skill, make_pool, until):
    events = []

    async def observe(event):
        events.append(event)

    skill = make_skill(TOOLS)
    async with make_pool(observe=observe) as pool:
        await pool.call(skill.call("pid"))
        assert [event.hook for event in events] == ["worker_start"]
        with pytest.raises(WorkerExited):
            await pool.call(skill.call("die"))
        await until(lambda: len(events) == 2)
        await pool.call(skill.call("pid"))
    first, died, second, closed = events
    assert [event.worker for event in events] == [1, 1, 2, 2]
    assert (died.hook, died.status, died.code) == ("worker_end", "failed", "worker.exited")
    assert (closed.hook, closed.status, closed.code) == ("worker_end", "retired", "")
    assert (first.domain, first.isolation, second.isolation) == (skill.folder.name, "none", "none")
    assert min(event.ms for event in events) > 0


async def test_worker_that_does_not_start_is_not_observed(make_pool, make_skill):
    events = []

    async def observe(event):
        events.append(event)

    async with make_pool(observe=observe, start_timeout=0.001) as pool:
        with pytest.raises(WorkerStartFailed):
            await pool.call(make_skill(TOOLS).call("pid"))
    assert events == []
