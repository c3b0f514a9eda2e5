"""What the peers' scripts share: the arguments, the loops that are timed, and the line of JSON."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

TOOLS = 10
ROUNDS = 30

Run = Callable[[int], Awaitable[object]]
"""Run one agent in the session with this number, and return the text of its answer."""


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def in_process(run: Run) -> dict[str, float]:
    """Return the median duration of a run with ten tool calls, each in a new session, in milliseconds."""
    times = []
    for number in range(ROUNDS):
        began = perf_counter()
        text = await run(number)
        times.append(perf_counter() - began)
        assert text == "All is done.", text
    return {"run_ms": median(times[3:]) * 1e3}


async def over_http(run: Run, sessions: int, runs: int) -> dict[str, float]:
    """Return the runs per second, with one tool call each, in concurrent sessions."""

    async def several(number: int) -> None:
        for _ in range(runs):
            text = await run(number)
            assert text == "All is done.", text

    await several(sessions)
    began = perf_counter()
    await asyncio.gather(*map(several, range(sessions)))
    return {"per_second": sessions * runs / (perf_counter() - began)}


def main(make: Callable[[str, int, Path | None], Awaitable[Run]], imported: float) -> None:
    """Measure the mode that the arguments select, and print the figures.

    Args:
        make: makes the function that is timed, from the mode, the port of the server, and the folder in which the
            peer stores its sessions, or ``None`` if it stores nothing.
        imported: the duration of the imports in seconds.
    """
    mode, storage, *numbers = sys.argv[1:]
    port, sessions, runs = map(int, numbers or (0, 0, 0))

    async def measure() -> dict[str, float]:
        with TemporaryDirectory() as folder:
            run = await make(mode, port, Path(folder) if storage == "stored" else None)
            return await (in_process(run) if mode == "in_process" else over_http(run, sessions, runs))

    found = asyncio.run(measure())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**found, "peak_mb": peak, "import_s": imported}))
