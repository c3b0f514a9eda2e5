"""A skill that occupies its threads leaves threads for others."""

from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import OpContext, OpError, OpFamily, op

pytestmark = pytest.mark.anyio

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


class Nothing(BaseModel):
    pass


@op("greedy.go", timeout=60)
async def go(params: Nothing, ctx: OpContext) -> None:
    async def one() -> None:
        try:
            await ctx.dispatch("sql.query", {"sql": ENDLESS, "db": "a.db"})
        except OpError:
            return

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(one)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_endless_queries_of_one_call_do_not_starve_another(tmp_path):
    module = SimpleNamespace(sideband_ops=lambda: OpFamily(name="greedy", ops=(go,)))
    async with Host(home=tmp_path, plugins=[Plugin("op", "greedy", module)]) as host:
        await host.op("sql.execute", {"sql": "CREATE TABLE t (a)", "db": "a.db"})
        await host.op("sql.execute", {"sql": "CREATE TABLE t (a)", "db": "b.db"})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.op, "greedy.go", {})
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(10):
                for _ in range(5):
                    await host.op("sql.query", {"sql": "SELECT 1", "db": "b.db"})
            tasks.cancel_scope.cancel()
