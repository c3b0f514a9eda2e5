"""The limits hold for parallel effects, for all hosts that share a store, and for hosts that were killed."""

import subprocess
import sys
from contextlib import ExitStack
from itertools import count

import anyio
import pytest
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio

PROGRAM = """
import sys
from pathlib import Path
from types import SimpleNamespace

import anyio
import sideband_guard_limits.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin, hookimpl
from sideband.errors import SidebandError
from sideband.ops import Level, OpContext, OpFamily, op


class Nothing(BaseModel):
    pass


async def stop(where):
    if where == sys.argv[3]:
        print(where, flush=True)
        await anyio.sleep_forever()


class Later:
    @hookimpl(after="guard-limits")
    async def op_call(self, event):
        await stop("before the effect")


@op("mail.wipe", level=Level.PRIVILEGED)
async def wipe(params: Nothing, ctx: OpContext) -> None:
    await stop("in the effect")


async def main(home, calls):
    family = SimpleNamespace(sideband_ops=lambda: OpFamily(name="mail", ops=(wipe,)))
    plugins = [
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("guard", "guard-limits", sideband_guard_limits.plugin),
        Plugin("guard", "later", Later),
        Plugin("op", "mail", family),
    ]
    passed = []

    async def call():
        try:
            await host.op("mail.wipe", {}, principal="guest")
        except SidebandError as error:
            assert error.plugin == "guard-limits", error
        else:
            passed.append(1)

    async with Host(home=home, plugins=plugins, autoload=False) as host:
        print("open", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        async with anyio.create_task_group() as tasks:
            for _ in range(calls):
                tasks.start_soon(call)
    print(len(passed), flush=True)


anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
"""


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a host, which makes parallel calls of a PRIVILEGED op after a line of input."""
    with ExitStack() as stack:

        def begin(calls, stop="nowhere"):
            arguments = [sys.executable, "-c", PROGRAM, str(tmp_path / "home"), str(calls), stop]
            process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdout.readline() == "open\n"
            return process

        yield begin


def go(process):
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize("hosts", [1, 2])
def test_of_100_parallel_effects_exactly_20_pass_on_any_number_of_hosts(start, hosts):
    processes = [start(100 // hosts) for _ in range(hosts)]
    for process in processes:
        go(process)
    assert sum(int(process.stdout.readline()) for process in processes) == 20
    assert [process.wait(60) for process in processes] == [0] * hosts


@pytest.mark.parametrize("where", ["before the effect", "in the effect"])
async def test_reservation_of_an_effect_whose_host_was_killed_is_taken_until_its_window_has_passed(
    start, tmp_path, clock, where
):
    process = start(1, where)
    go(process)
    assert process.stdout.readline() == f"{where}\n"
    process.kill()
    process.wait(60)
    process = start(100)
    go(process)
    assert process.stdout.readline() == "19\n"
    assert process.wait(60) == 0


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_parallel_effects_share_the_limit_exactly(make_host, clock):
    seconds = count()
    async with make_host(privileged="20/h") as host:
        passed = []

        async def call():
            clock.now += next(seconds) % 2  # reservations in several slices of the window
            try:
                await host.op("mail.wipe", {}, principal="guest")
            except OpDenied:
                return
            passed.append(1)

        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(call)
            assert len(passed) == 20
            passed.clear()
            clock.now += 3_660
