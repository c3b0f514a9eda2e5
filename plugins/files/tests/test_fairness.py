"""A skill that occupies its threads leaves threads for others."""

import os
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.ops import OpContext, OpFamily, op
from sideband_confined_files import FolderLocks

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    pass


@op("greedy.go", timeout=60)
async def go(params: Nothing, ctx: OpContext) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(ctx.dispatch, "files.write", {"path": f"locked/{number}", "content": ""})


@pytest.fixture
def settings():
    return {"threads": 2}


@pytest.fixture
def more_plugins():
    return [Plugin("op", "greedy", SimpleNamespace(sideband_ops=lambda: OpFamily(name="greedy", ops=(go,))))]


@pytest.fixture
def locked(host, home):
    """A folder that is locked by another host."""
    (home / "locked").mkdir()
    folder = os.open(home / "locked", os.O_RDONLY)
    with FolderLocks(host.home).held(folder):
        yield home / "locked"
    os.close(folder)


async def test_waiting_writers_of_one_call_do_not_starve_another(host, files, home, locked):
    (home / "x").write_text("x")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.op, "greedy.go", {})
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(20):
            for _ in range(5):
                assert (await files.read("x"))["content"] == "x"
        tasks.cancel_scope.cancel()
    assert list(locked.iterdir()) == []
