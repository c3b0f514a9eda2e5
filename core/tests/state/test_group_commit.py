"""Work that concurrent tasks share: at most two runs for all, and errors and cancellation of one do not stop others."""

import anyio
import pytest
from sideband.state import GroupCommit

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


class Work:
    """Work that ends when ``may_end`` is set, and raises as often as ``failures``."""

    def __init__(self):
        self.runs = self.failures = 0
        self.may_end = anyio.Event()

    async def __call__(self):
        self.runs += 1
        await self.may_end.wait()
        if self.failures:
            self.failures -= 1
            raise OSError("failed")


async def wait(commit, results):
    try:
        await commit.wait()
        results.append("done")
    except OSError:
        results.append("failed")


async def start(tasks, *arguments, count=1):
    for _ in range(count):
        tasks.start_soon(wait, *arguments)
    await anyio.wait_all_tasks_blocked()


async def test_tasks_that_come_during_a_run_share_the_next_one():
    work, results = Work(), []
    commit = GroupCommit(work)
    async with anyio.create_task_group() as tasks:
        await start(tasks, commit, results)
        await start(tasks, commit, results, count=10)
        assert (work.runs, results) == (1, [])
        work.may_end.set()
    assert (work.runs, results) == (2, ["done"] * 11)


async def test_task_without_others_starts_a_run_of_its_own_each_time():
    work = Work()
    work.may_end.set()
    commit = GroupCommit(work)
    for _ in range(3):
        await commit.wait()
    assert work.runs == 3


async def test_failed_run_is_reported_to_its_task_and_the_others_try_again():
    work, results = Work(), []
    work.failures = 2
    commit = GroupCommit(work)
    async with anyio.create_task_group() as tasks:
        await start(tasks, commit, results)
        await start(tasks, commit, results, count=3)
        work.may_end.set()
    assert (work.runs, sorted(results)) == (4, ["done", "done", "failed", "failed"])


@pytest.mark.parametrize("leads", ["this run", "the next run"])
async def test_cancelled_task_leaves_the_work_to_another(leads):
    work, results = Work(), []
    commit = GroupCommit(work)
    async with anyio.create_task_group() as tasks:
        if leads == "the next run":
            await start(tasks, commit, results)
        async with anyio.create_task_group() as cancelled:
            await start(cancelled, commit, [])
            await start(tasks, commit, results, count=3)
            cancelled.cancel_scope.cancel()
        work.may_end.set()
    assert set(results) == {"done"}
    assert (len(results), work.runs) == (4 if leads == "the next run" else 3, 2)
