"""Measures a skill call with one op, compared with a blocking pipe that carries the same four messages.

The floor consists of two processes, two pipes and the JSON codec of the standard library, without any lookup, check or
record. ``worker`` is only the exchange between host and worker. ``host`` includes all checks, redaction and the ledger
lines of a MONITORED op. ``durable`` runs a CONTROLLED op, whose intent is on disk before it runs. For many calls in
flight, the peer is the MCP SDK with a tool that calls its client once, which also exchanges four messages.

Run: ``python -m benchmarks.skill_call [FOLDER]``, with a folder on the disk to measure. Prints one line of JSON.
Bounds: four times the floor; durable, 1.3 times a call plus an fdatasync; 8 times the rate of the MCP SDK, and 15 times
with many calls in flight.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import anyio
from pydantic import BaseModel
from sideband import Host, Level, OpContext, OpFamily, op
from sideband.plugins import Plugin
from sideband.workers import CallHandler, LaunchRequest, PlainSandbox, WorkerCall, WorkerPool, runtime_files

from ._peers import MISSING, peer
from ._rows import Row, ratio_of, report

CALLS = 40
ROUNDS = 60
TOGETHER = {64: 1_920, 1_000: 2_000}
URL = "https://api.github.com/repos/pytest-dev/pluggy"
ANSWER = {"status": 200, "body": "ok"}
SKILL = f'''
from sideband.skill import echo, tool

@tool
async def one(n: int) -> dict:
    """One op."""
    return await echo.get(url="{URL}", n=n)

@tool
async def durable(n: int) -> dict:
    """One op whose intent is on disk before it runs."""
    return await echo.put(url="{URL}", n=n)
'''
MESSAGES = [
    {
        "__type__": "call",
        "__id__": "8c2f" * 8,
        "__call__": {
            "module": "/skills/digest/tools.py",
            "function": "one",
            "kwargs": {"n": 1},
            "working_dir": "/skills/digest",
            "capabilities": ["echo"],
            "env": {"timezone": "UTC", "locale": "C.UTF-8"},
        },
    },
    {
        "__type__": "dispatch",
        "__id__": "8c2f" * 8,
        "__dispatch_id__": "d-1",
        "__caps__": ["echo"],
        "__dispatch__": {"op": "echo.get", "params": {"url": URL, "n": 1}},
    },
    {"__type__": "dispatch_result", "__dispatch_id__": "d-1", "payload": ANSWER},
    {"__type__": "result", "__id__": "8c2f" * 8, **ANSWER},
]
PEER = """
import json, os, sys
messages = json.loads(sys.argv[1])
lines = os.fdopen(0, "rb")
while True:
    for answer in messages:
        line = lines.readline()
        if not line:
            sys.exit()
        json.loads(line)
        os.write(1, json.dumps(answer).encode() + b"\\n")
"""


class EchoParams(BaseModel):
    """The parameters to return."""

    url: str
    n: int


@op("echo.get", record=["url", "n"])
async def get(params: EchoParams, ctx: OpContext) -> dict[str, Any]:  # noqa: ARG001  an op's signature
    """Return immediately."""
    return ANSWER


@op("echo.put", record=["url", "n"], level=Level.CONTROLLED)
async def put(params: EchoParams, ctx: OpContext) -> dict[str, Any]:  # noqa: ARG001  an op's signature
    """Return immediately, once the intent is on disk."""
    return ANSWER


ECHO = Plugin(kind="op", name="echo", value=SimpleNamespace(sideband_ops=lambda: OpFamily("echo", (get, put))))

Call = Callable[[], Awaitable[object]]


class Floor:
    """Two processes that exchange the four messages."""

    def __init__(self) -> None:
        self._peer = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PEER, json.dumps([MESSAGES[1], MESSAGES[3]])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    async def call(self) -> None:
        assert self._peer.stdin is not None
        assert self._peer.stdout is not None
        for message in (MESSAGES[0], MESSAGES[2]):
            os.write(self._peer.stdin.fileno(), json.dumps(message).encode() + b"\n")
            json.loads(self._peer.stdout.readline())

    def close(self) -> None:
        self._peer.communicate()


def worker_call(folder: Path) -> Callable[[], WorkerCall]:
    sdk = folder / "sdk"
    for name, source in runtime_files().items():
        (sdk / name).parent.mkdir(parents=True, exist_ok=True)
        (sdk / name).write_bytes(source.read_bytes())
    launch = LaunchRequest(snapshot=folder / "skill", sdk=sdk)
    numbers = count()

    class Handler(CallHandler):
        async def dispatch(self, op: str, params: object) -> object:  # noqa: ARG002  the pool's signature
            return ANSWER

    handler = Handler()
    return lambda: WorkerCall(
        id=f"{next(numbers):032x}",
        tool="skill.one",
        domain="d",
        launch=launch,
        module=str(launch.snapshot / "tools.py"),
        function="one",
        arguments={"n": 1},
        handler=handler,
        capabilities=("echo",),
        environment={"timezone": "UTC", "locale": "C.UTF-8"},
    )


async def median_us(call: Call) -> float:
    times = []
    for _ in range(CALLS):
        started = perf_counter()
        await call()
        times.append(perf_counter() - started)
    return median(times) * 1e6


async def per_second(call: Call, waiting: int) -> float:
    """Return the calls per second with a number of calls in flight."""
    times = TOGETHER[waiting] // waiting
    started = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(waiting):
            tasks.start_soon(_repeat, call, times)
    return waiting * times / (perf_counter() - started)


async def _repeat(call: Call, times: int) -> None:
    for _ in range(times):
        await call()


class Disk:
    """Appends and syncs one line: the minimum disk access of a durable call."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def call(self) -> None:
        os.write(self._descriptor, b"x" * 600)
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


async def measure(folder: Path) -> None:
    (folder / "skill").mkdir()
    (folder / "skill" / "tools.py").write_text(SKILL)
    (folder / "skill" / "SKILL.md").write_text("---\nname: skill\ndescription: Calls with one op.\n---\n")
    make, floor, disk = worker_call(folder), Floor(), Disk(folder / "floor")
    host = Host(
        home=folder / "home",
        settings={"policy": {"isolation": "none"}, "plugins": {"guard-limits": {"controlled": "unlimited"}}},
        plugins=[ECHO],
        skill_dirs=[folder / "skill"],
    )
    async with WorkerPool(PlainSandbox()) as pool, host:
        calls: dict[str, Call] = {
            "floor": floor.call,
            "worker": lambda: pool.call(make()),
            "host": lambda: host.call("skill.one", n=1),
            "durable": lambda: host.call("skill.durable", n=1),
            "disk": disk.call,
        }
        rounds: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):  # interleaved, so that other load affects all of them
            for name, call in calls.items():
                rounds[name].append(await median_us(call))
        together = {waiting: await per_second(calls["host"], waiting) for waiting in TOGETHER}
        durable_together = await per_second(calls["durable"], 64)
    floor.close()
    disk.close()
    middle = {name: median(times[1:]) for name, times in rounds.items()}
    lines = [call + sync for call, sync in zip(rounds["host"], rounds["disk"], strict=True)]
    sdk = peer("mcp_callback") or {}
    report(
        [
            Row("skill call with one op", middle["host"], "µs", middle["floor"], bound=4,
                ratio=ratio_of(rounds["host"][1:], rounds["floor"][1:])),
            Row("the same, only host and worker messages", middle["worker"], "µs", middle["floor"],
                ratio=ratio_of(rounds["worker"][1:], rounds["floor"][1:])),
            Row("the same, durable (call plus fdatasync)", middle["durable"], "µs", median(lines), bound=1.3,
                ratio=ratio_of(rounds["durable"][1:], lines[1:])),
            Row("skill call (the MCP SDK with a callback)", 1e6 / middle["host"], "calls/s",
                1e6 / sdk["call_us"] if sdk else None, bound=8, note=MISSING),
            *(
                Row(f"skill calls, {waiting:,} in flight (the MCP SDK)", figure, "calls/s",
                    sdk.get(f"{waiting}_per_second"), bound=15, note=MISSING)
                for waiting, figure in together.items()
            ),
            Row("durable skill calls, 64 in flight (the MCP SDK)", durable_together, "calls/s",
                sdk.get("64_per_second"), bound=15, note=MISSING),
        ],
        **{f"{name}_us": round(value, 1) for name, value in middle.items()},
        **{f"{name}_least_us": round(min(times), 1) for name, times in rounds.items()},
    )  # fmt: skip


def main() -> None:
    with TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        anyio.run(measure, Path(folder))


if __name__ == "__main__":
    main()
