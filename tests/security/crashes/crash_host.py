"""Hosts to be killed: a script that forks one for each order, so that none of them has to import anything.

Orders come on standard input and events go to standard output, as JSON objects, one a line. The script waits for a
host to end before it reads the next order.

``{"home", "backend", "tier", "python", "temporary", "skills", "work", …}`` is an order; ``work`` names a function
below. ``{"event": "forked", "pid"}``, then what the host says, then ``{"event": "ended", "status"}`` are the events.
"""

import ctypes
import faulthandler
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import anyio
import anyio._backends._asyncio
import anyio._backends._trio
import sideband_http.plugin
import sideband_progress.plugin
import sideband_skills.plugin
import sideband_sql.plugin
import sideband_store_sqlite.plugin
import trio  # noqa: F401  imported once for all hosts
from attrs import evolve
from pydantic import BaseModel
from sideband import CallRequest, Host, Plugin, SidebandError
from sideband.ledger import query, verify
from sideband.ops import Level, OpContext, OpFamily, op
from sideband_sandbox import SystemSandbox
from sideband_sandbox._machine._inspection import inspect_machine

_BECOME_PARENT_OF_ORPHANS = 36
_ALL = 1_000_000


class Nothing(BaseModel):
    pass


class Gate:
    """What pending ops wait for."""

    waiting = 0
    opened = None

    @classmethod
    async def wait(cls):
        cls.opened = cls.opened or anyio.Event()
        cls.waiting += 1
        say(event="waiting", count=cls.waiting)
        try:
            await cls.opened.wait()
        finally:
            cls.waiting -= 1

    @classmethod
    def open(cls):
        cls.opened.set()
        cls.opened = None


@op("crash.wait", level=Level.MONITORED)
async def wait(params: Nothing, ctx: OpContext) -> str:
    """Be pending until the test releases it."""
    await Gate.wait()
    return "released"


def say(**event):
    os.write(1, json.dumps(event).encode() + b"\n")


def make_sandbox(order):
    machine, reason = inspect_machine()
    assert machine is not None, reason
    if order["tier"] == "no-namespaces":
        # A kernel that does not let this process change its root.
        machine = evolve(machine, architecture=evolve(machine.architecture, pivot_root=10_000))
    return SystemSandbox(machine, python=Path(order["python"]))


def make_host(order):
    sandbox = SimpleNamespace(sideband_sandboxes=lambda: [make_sandbox(order)])
    crash = SimpleNamespace(sideband_ops=lambda: OpFamily(name="crash", ops=(wait,)))
    plugins = [
        Plugin("loader", "skills", sideband_skills.plugin),
        Plugin("op", "crash", crash),
        Plugin("op", "http", sideband_http.plugin),
        Plugin("op", "progress", sideband_progress.plugin),
        Plugin("op", "sql", sideband_sql.plugin),
        Plugin("sandbox", "sandbox", sandbox),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    settings = {"policy": {"isolation": order["tier"]}}
    skills = [Path(folder) for folder in order["skills"]]
    return Host(home=Path(order["home"]), settings=settings, plugins=plugins, autoload=False, skill_dirs=skills)


async def obey(order):
    """Make the calls that are asked for, until told to close."""
    commands = os.open(order["commands"], os.O_RDWR | os.O_NONBLOCK)
    async with make_host(order) as host, anyio.create_task_group() as tasks:
        say(event="open")
        while True:
            await anyio.wait_readable(commands)
            for line in os.read(commands, 65_536).splitlines():
                command = json.loads(line)
                if "close" in command:
                    tasks.cancel_scope.cancel()
                    return
                if "release" in command:
                    Gate.open()
                else:
                    tasks.start_soon(one_call, host, command)


async def one_call(host, command):
    request = CallRequest(command["tool"], command["arguments"], grants=(), timeout=command["timeout"])
    started = time.perf_counter()
    try:
        answer = {"output": (await host.run(request)).output}
    except SidebandError as error:
        answer = {"code": error.code, "message": str(error)}
    say(event="answer", id=command["id"], seconds=time.perf_counter() - started, **answer)


async def storm(order):
    """Cause effects of all kinds at once, until killed."""
    chance = random.Random(order["seed"])
    async with make_host(order) as host:
        say(event="open", recovered=len(host.recovered))
        async with anyio.create_task_group() as tasks:
            for job in (keep_writing, keep_posting, keep_writing_once, keep_posting_once, keep_telling):
                tasks.start_soon(job, host, order, random.Random(chance.random()))


async def keep_writing(host, order, chance):
    for number in range(_ALL):
        tokens = [f"u{order['round']}-w{number}-{index}" for index in range(chance.randint(1, 4))]
        await call(host, "writer.write", tokens=tokens)


async def keep_posting(host, order, chance):
    for number in range(_ALL):
        tokens = [f"u{order['round']}-p{number}-{index}" for index in range(chance.randint(1, 4))]
        await call(host, "caller.post", url=order["url"], tokens=tokens)


async def keep_writing_once(host, order, chance):
    for number in keys(order, chance):
        await call(host, "writer.write", key=f"write-{number}", tokens=[f"k-w{number}-{index}" for index in range(3)])


async def keep_posting_once(host, order, chance):
    for number in keys(order, chance):
        tokens = [f"k-p{number}-{index}" for index in range(3)]
        await call(host, "caller.post", key=f"post-{number}", url=order["url"], tokens=tokens)


def keys(order, chance):
    """Numbers of which many were tried by the hosts before, and many will be tried by the hosts that follow."""
    first = 5 * order["round"]
    while True:
        yield first + chance.randrange(40)


async def keep_telling(host, order, chance):
    for number in range(_ALL):
        tokens = [f"u{order['round']}-t{number}-{index}" for index in range(chance.randint(1, 4))]
        await call(host, "teller.tell", url=order["url"], tokens=tokens)


async def call(host, tool, *, key=None, **arguments):
    grants = ("http:host=127.0.0.1", "sql:path=storm.db")
    result = await host.run(CallRequest(tool, arguments, grants=grants, key=key, timeout=60))
    say(event="worked", tool=tool, effects=len(result.effects), isolation=result.isolation)


async def check(order):
    """Recover what was killed, make a call, and say all that the ledger says."""
    async with make_host(order) as host:
        recovered = [one.status for one in host.recovered]
        if order["call"]:
            await call(host, "writer.write", tokens=[f"c{order['round']}"])
        verdict = await verify(host.ledger.folder, host.store)
        records = await query(host.ledger.folder, limit=_ALL)
        said = [[record.op, record.status, record.key, dict(record.params)] for record in records]
    say(
        event="checked",
        recovered=recovered,
        problems=[str(problem) for problem in verdict.problems],
        entries=verdict.entries,
        records=said,
    )


def run(order):
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    os.environ["TMPDIR"] = tempfile.tempdir = order["temporary"]
    work = {"obey": obey, "storm": storm, "check": check}[order["work"]]
    try:
        anyio.run(partial(work, order), backend=order["backend"])
    except BaseException:  # noqa: BLE001  whatever it was, the test has to hear of it
        say(event="broken", trace=traceback.format_exc())
        os._exit(1)
    os._exit(0)


def reap(pid):
    """Wait for the host, and take note of its orphans, which are this process's children then."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def main():
    ctypes.CDLL(None).prctl(_BECOME_PARENT_OF_ORPHANS, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say(event="ready")
    for line in sys.stdin.buffer:
        pid = os.fork()
        if not pid:
            # Said here, so that nothing that the host says can come before it.
            say(event="forked", pid=os.getpid())
            run(json.loads(line))
        say(event="ended", status=reap(pid))


if __name__ == "__main__":
    sys.exit(main())
