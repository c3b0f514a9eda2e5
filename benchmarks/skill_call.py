"""What a skill call with one op costs, as a ratio to a raw blocking pipe that carries the same four messages.

The floor (A in DESIGN section 16) is two processes, two pipes and the standard library's codec; nothing is looked up,
checked or recorded. ``worker`` is the conversation of host and worker alone; ``host`` has every gate, redaction and the
ledger lines of a MONITORED op.

Run: ``PYTHONPATH=core/src python benchmarks/skill_call.py``. Prints one line of JSON. DESIGN's bound: ``host_ratio`` at
most 2.
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
from sideband import Host, OpContext, OpFamily, op
from sideband.plugins import Plugin
from sideband.workers import LaunchRequest, PlainSandbox, WorkerCall, WorkerPool, runtime_files

CALLS = 300
ROUNDS = 9
AT_ONCE = 64
URL = "https://api.github.com/repos/pytest-dev/pluggy"
ANSWER = {"status": 200, "body": "ok"}
SKILL = f'''
from sideband.skill import echo, tool

@tool
async def one(n: int) -> dict:
    """One op."""
    return await echo.get(url="{URL}", n=n)
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
    """What is echoed."""

    url: str
    n: int


@op("echo.get", record=["url", "n"])
async def get(params: EchoParams, ctx: OpContext) -> dict[str, Any]:  # noqa: ARG001  an op's signature
    """Answer at once."""
    return ANSWER


ECHO = Plugin(kind="op", name="echo", value=SimpleNamespace(sideband_ops=lambda: OpFamily("echo", (get,))))

Call = Callable[[], Awaitable[object]]


class Floor:
    """Two processes that send each other the four messages."""

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

    async def dispatch(dispatch_id: str, name: str, params: object) -> object:  # noqa: ARG001  the pool's signature
        return ANSWER

    return lambda: WorkerCall(
        id=f"{next(numbers):032x}",
        tool="skill.one",
        domain="d",
        launch=launch,
        module=str(launch.snapshot / "tools.py"),
        function="one",
        arguments={"n": 1},
        dispatch=dispatch,
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


async def per_second(call: Call) -> float:
    started = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(_repeat, call, CALLS // 10)
    return AT_ONCE * (CALLS // 10) / (perf_counter() - started)


async def _repeat(call: Call, times: int) -> None:
    for _ in range(times):
        await call()


async def measure(folder: Path) -> dict[str, float]:
    (folder / "skill").mkdir()
    (folder / "skill" / "tools.py").write_text(SKILL)
    (folder / "skill" / "SKILL.md").write_text("---\nname: skill\ndescription: One op.\n---\n")
    make, floor = worker_call(folder), Floor()
    host = Host(
        home=folder / "home",
        settings={"policy": {"isolation": "none"}},
        plugins=[ECHO],
        skill_dirs=[folder / "skill"],
    )
    async with WorkerPool(PlainSandbox()) as pool, host:
        calls: dict[str, Call] = {
            "floor": floor.call,
            "worker": lambda: pool.call(make()),
            "host": lambda: host.call("skill.one", n=1),
        }
        rounds: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):  # interleaved, so that other load on the machine hits all of them
            for name, call in calls.items():
                rounds[name].append(await median_us(call))
        found = {f"{name}_us": round(median(times[1:]), 1) for name, times in rounds.items()}
        for name in ("worker", "host"):
            found[f"{name}_ratio"] = round(found[f"{name}_us"] / found["floor_us"], 2)
            found[f"{name}_{AT_ONCE}_calls_per_second"] = round(await per_second(calls[name]))
    floor.close()
    return found


def main() -> None:
    with TemporaryDirectory() as folder:
        print(json.dumps(anyio.run(measure, Path(folder))))


if __name__ == "__main__":
    main()
