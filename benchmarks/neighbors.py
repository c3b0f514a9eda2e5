"""Measures the calls of a well-behaved skill next to a hostile skill, compared with the same calls alone.

Each hostile skill runs for as long as the well-behaved skill is measured, and is called again whenever the host ends
its worker. All checks, redaction and ledger lines are active. Isolation is off, because it does not change the load on
the host.

Run: ``python -m benchmarks.neighbors [KIND…]``. Prints one line of JSON per kind of hostile skill. Bound: a
``p50_ratio`` of at most 1.5 next to a skill that uses a full core, on a machine with two cores.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import anyio
from anyio.lowlevel import checkpoint
from pydantic import BaseModel
from sideband import Host, OpContext, OpFamily, SidebandError, op
from sideband.plugins import Plugin

from ._rows import Row, report

SECONDS = 1.5
ROUNDS = 3
QUIET = '''
from sideband.skill import echo, tool

@tool
async def one(n: int) -> dict:
    """One op."""
    return await echo.get(text="hello", n=n)
'''
HOSTILE = '''
import asyncio, json, os, time
from sideband.skill import current_call, echo, tool, OpError

def line(**fields):
    return json.dumps({"__id__": current_call.get().id, **fields}).encode() + b"\\n"

def flood(data):
    os.set_blocking(3, True)
    while True:
        os.write(3, data)

@tool
async def endless_loop() -> None:
    """Use a full core."""
    while True:
        pass

@tool
async def output_flood() -> None:
    """Write to standard output endlessly."""
    while True:
        os.write(1, b"x\\n" * 32_768)

@tool
async def log_flood() -> None:
    """Send log lines endlessly, bypassing the runtime."""
    flood(line(__type__="log", stream="stdout", text="x") * 1_000)

@tool
async def progress_flood() -> None:
    """Report progress endlessly, bypassing the runtime."""
    flood(line(__type__="progress", current=1) * 1_000)

@tool
async def op_flood() -> None:
    """Request ops endlessly, with maximum concurrency."""
    await asyncio.gather(*(_ask() for _ in range(32)))

async def _ask():
    while True:
        try:
            await echo.get(text="x", n=1)
        except OpError:
            pass

@tool
async def huge_frames() -> None:
    """Send parameters of 15 MiB endlessly."""
    text = "x, " * (5 << 20)
    while True:
        try:
            await echo.get(text=text, n=1)
        except OpError:
            pass

@tool
async def many_values() -> None:
    """Request ops with parameters that are slow to parse, endlessly."""
    values = [[]] * 249_000
    while True:
        try:
            await echo.get(text="x", n=values)
        except OpError:
            pass

@tool
async def memory_hog() -> None:
    """Allocate memory until the worker is killed."""
    taken = []
    while True:
        taken.append(bytearray(os.urandom(1 << 20)) * 32)
'''
KINDS = (
    "endless_loop",
    "output_flood",
    "log_flood",
    "progress_flood",
    "op_flood",
    "huge_frames",
    "many_values",
    "memory_hog",
)


class EchoParams(BaseModel):
    """The values to return."""

    text: str
    n: int


@op("echo.get", record=["n"])
async def get(params: EchoParams, ctx: OpContext) -> dict[str, Any]:  # noqa: ARG001  an op's signature
    """Return immediately."""
    return {"text": params.text}


ECHO = Plugin(kind="op", name="echo", value=SimpleNamespace(sideband_ops=lambda: OpFamily("echo", (get,))))


async def hostile_calls(host: Host, kind: str) -> None:
    """Call a hostile tool repeatedly."""
    while True:
        try:
            await host.call(f"hostile.{kind}")
        except SidebandError:
            await checkpoint()


async def quiet_calls(host: Host) -> list[float]:
    """Return the duration of each call in microseconds."""
    times = []
    end = perf_counter() + SECONDS
    while (started := perf_counter()) < end:
        await host.call("quiet.one", n=1)
        times.append((perf_counter() - started) * 1e6)
    return times


async def beside(host: Host, kind: str) -> list[float]:
    """Measure the well-behaved skill while a hostile skill runs."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hostile_calls, host, kind)
        await anyio.sleep(0.3)
        times = await quiet_calls(host)
        tasks.cancel_scope.cancel()
    return times


def spread(times: list[float]) -> tuple[float, float]:
    """Return the 50th and the 95th percentile."""
    return median(times), quantiles(times, n=20)[-1]


async def measure(folder: Path, kinds: list[str]) -> None:
    """Print a line for each kind, from alternating runs with and without the hostile skill."""
    for name, source in (("quiet", QUIET), ("hostile", HOSTILE)):
        (folder / name).mkdir()
        (folder / name / "tools.py").write_text(source)
        (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {name}.\n---\n")
    host = Host(
        home=folder / "home",
        settings={"policy": {"isolation": "none"}},
        plugins=[ECHO],
        skill_dirs=[folder / "quiet", folder / "hostile"],
    )
    async with host:
        await quiet_calls(host)
        for kind in kinds:
            alone, together = [], []
            for _ in range(ROUNDS):
                alone += await quiet_calls(host)
                together += await beside(host, kind)
            (p50, p95), (p50_beside, p95_beside) = spread(alone), spread(together)
            found = {
                "neighbor": kind,
                "p50_us": round(p50),
                "p50_ratio": round(p50_beside / p50, 2),
                "p95_us": round(p95),
                "p95_ratio": round(p95_beside / p95, 2),
                "slowest_ms": round(max(together) / 1e3, 1),
            }
            bound = 1.5 if kind == "endless_loop" else None
            report([Row(f"a call next to {kind}", p50_beside, "µs", p50, bound=bound)], **found)


def main() -> None:
    with TemporaryDirectory() as folder:
        anyio.run(measure, Path(folder), sys.argv[1:] or list(KINDS))


if __name__ == "__main__":
    main()
