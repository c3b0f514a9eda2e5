"""When the call of a skill is cancelled, an op that waits for a thread can cause no further effects for it."""

import asyncio
import threading
import time
from types import SimpleNamespace

import anyio
import pytest
from anyio import to_thread
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import ContextRevoked, OpContext, OpFamily, op

pytestmark = pytest.mark.anyio

SKILL = """
from sideband.skill import dispatch, tool

@tool
async def work() -> None:
    await dispatch("area.work", {})
"""


class Nothing(BaseModel):
    pass


async def test_op_in_a_thread_cannot_dispatch_after_its_call_was_cancelled(tmp_path, make_skill):
    begun, left = threading.Event(), []

    @op("area.mark")
    async def mark(params: Nothing, ctx: OpContext) -> None: ...

    @op("area.work", timeout=60)
    async def work(params: Nothing, ctx: OpContext) -> None:
        loop = asyncio.get_running_loop()

        def in_thread():
            begun.set()
            try:
                while True:
                    asyncio.run_coroutine_threadsafe(ctx.dispatch("area.mark", {}), loop).result()
                    time.sleep(0.01)
            except ContextRevoked:
                left.append(ctx.deadline - loop.time())

        await to_thread.run_sync(in_thread)

    area = Plugin("op", "area", SimpleNamespace(sideband_ops=lambda: OpFamily("area", (work, mark))))
    folder = make_skill("worker", SKILL, timeout="60")
    settings = {"policy": {"isolation": "none"}}
    async with Host(home=tmp_path / "home", plugins=[area], skill_dirs=[folder], settings=settings) as host:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.call, "worker.work")
            assert await to_thread.run_sync(begun.wait, 60)
            tasks.cancel_scope.cancel()
        assert left[0] > 0
