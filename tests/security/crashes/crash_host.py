"""A script that forks a host for each order, so that hosts start without importing anything.

Orders are read from standard input and events written to standard output, as JSON objects, one per line. The script
waits for a host to exit before it reads the next order.

An order is ``{"home", "backend", "tier", "python", "temporary", "skills", "work", …}``; ``work`` names a function
below. The events are ``{"event": "forked", "pid"}``, those of the host, and ``{"event": "ended", "status"}``.
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
import sideband.host._parts
import sideband_http.plugin
import sideband_progress.plugin
import sideband_skills.plugin
import sideband_sql.plugin
import sideband_store_sqlite.plugin
import trio  # noqa: F401  imported before the fork
from attrs import evolve
from pydantic import BaseModel
from sideband import CallRequest, Host, Plugin, SidebandError
from sideband.ledger import query, verify
from sideband.ops import Level, OpContext, OpFamily, op
from sideband.workers import WorkerPool
from sideband_sandbox import SystemSandbox
from sideband_sandbox._machine._inspection import inspect_machine
from sideband_sandbox._workers import _forks

_BECOME_PARENT_OF_ORPHANS = 36
_ALL = 1_000_000

# Wait less for stopped processes than in production.
sideband.host._parts.WorkerPool = partial(WorkerPool, cancel_grace=0.3)
_forks._FORK_SECONDS = 2.0
_forks._END_SECONDS = 1.0


class Nothing(BaseModel):
    pass


class Gate:
    """The event that pending ops wait for."""

    waiting = 0
    opened = None

    @classmethod
    async def wait(cls):
        cls.opened = cls.opened or anyio.Event()
        cls.waiting += 1
        send(event="waiting", count=cls.waiting)
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
    """Wait until the test releases the op."""
    await Gate.wait()
    return "released"


def send(**event):
    os.write(1, json.dumps(event).encode() + b"\n")


def make_sandbox(order):
    machine, reason = inspect_machine()
    assert machine is not None, reason
    if order["tier"] == "no-namespaces":
        # Without a working pivot_root the tier full is not available.
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
    """Execute commands until the command to close."""
    commands = os.open(order["commands"], os.O_RDWR | os.O_NONBLOCK)
    async with make_host(order) as host, anyio.create_task_group() as tasks:
        send(event="open")
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
    send(event="answer", id=command["id"], seconds=time.perf_counter() - started, **answer)


async def storm(order):
    """Cause effects of all kinds concurrently, until killed."""
    chance = random.Random(order["seed"])
    async with make_host(order) as host:
        send(event="open", recovered=len(host.recovered))
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
    """Yield numbers that overlap with those of previous and later hosts."""
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
    send(event="worked", tool=tool, effects=len(result.effects), isolation=result.isolation)


async def check(order):
    """Recover the effects of killed hosts, make a call, and report the whole ledger."""
    async with make_host(order) as host:
        recovered = [one.status for one in host.recovered]
        if order["call"]:
            await call(host, "writer.write", tokens=[f"c{order['round']}"])
        verdict = await verify(host.ledger.folder, host.store)
        records = await query(host.ledger.folder, limit=_ALL)
        shown = [[record.op, record.status, record.key, dict(record.params)] for record in records]
    send(
        event="checked",
        recovered=recovered,
        problems=[str(problem) for problem in verdict.problems],
        entries=verdict.entries,
        records=shown,
    )


def run(order):
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    os.environ["TMPDIR"] = tempfile.tempdir = order["temporary"]
    work = {"obey": obey, "storm": storm, "check": check}[order["work"]]
    try:
        anyio.run(partial(work, order), backend=order["backend"])
    except BaseException:  # noqa: BLE001  every error must be reported to the test
        send(event="broken", trace=traceback.format_exc())
        os._exit(1)
    os._exit(0)


def reap(pid):
    """Wait for the host, and reap its orphans, which become children of this process."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def main():
    ctypes.CDLL(None).prctl(_BECOME_PARENT_OF_ORPHANS, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    send(event="ready")
    for line in sys.stdin.buffer:
        pid = os.fork()
        if not pid:
            # Sent by the host, so that it precedes its other events.
            send(event="forked", pid=os.getpid())
            run(json.loads(line))
        send(event="ended", status=reap(pid))


if __name__ == "__main__":
    sys.exit(main())
