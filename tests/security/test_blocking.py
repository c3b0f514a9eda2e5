"""Blocking calls on each isolation tier: the worker shows where it is blocked although it is locked down."""

import anyio
import pytest
from sideband import CallRequest
from sideband.workers import CallTimeout, WorkerBlocked

pytestmark = pytest.mark.anyio

SKILL = """---
name: blocking
description: Blocks its worker.
---
"""
TOOLS = """
import asyncio
from sideband.skill import tool

@tool
async def pid() -> int:
    import os
    return os.getpid()

@tool
async def spin() -> None:
    while True: pass

@tool
async def sum_in_c() -> int:
    return sum(range(10**12))

@tool
async def pause() -> None:
    print("paused")
    await asyncio.sleep(600)
"""


@pytest.mark.parametrize(
    ("tier", "function"),
    [
        ("full", "spin"),
        ("no-namespaces", "sum_in_c"),
        pytest.param("full", "sum_in_c", marks=pytest.mark.long),
        pytest.param("no-namespaces", "spin", marks=pytest.mark.long),
    ],
)
async def test_locked_down_worker_shows_where_it_is_blocked_and_only_its_calls_fail(
    make_host, tier, tmp_path, function
):
    folder = tmp_path / "blocking"
    folder.mkdir()
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "tools.py").write_text(TOOLS)
    line = 1 + TOOLS.splitlines().index(f"async def {function}() -> {'int' if function == 'sum_in_c' else 'None'}:")
    where = f"tools.py, line {line + 1}, in {function}"
    outcomes = {}
    paused = anyio.Event()

    async def call(tool, **options):
        try:
            outcomes[tool] = (await host.run(CallRequest(f"blocking.{tool}", {}, grants=(), **options))).output
        except Exception as error:  # noqa: BLE001  the test checks the outcomes
            outcomes[tool] = error

    async with make_host(tier, folder) as host, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: call("pause", timeout=600, on_log=lambda _: paused.set()))
        await paused.wait()
        tasks.start_soon(lambda: call(function, timeout=2))
        await call("pid", timeout=30)
        assert outcomes["pid"] > 0
    assert isinstance(outcomes[function], CallTimeout)
    assert where in outcomes[function].message
    assert isinstance(outcomes["pause"], WorkerBlocked)
    assert outcomes["pause"].where == where
