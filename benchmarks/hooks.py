"""Measures the duration of a hook dispatch, compared with a loop over a tuple in one cancel scope.

The loop is the minimum that enforces a single deadline.

Run: ``python -m benchmarks.hooks``. Prints one line of JSON per backend. The bound for five async implementations is
1.5 x the floor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter
from types import SimpleNamespace

import anyio
from sideband.hooks import HookRegistry, OpCall, Phase, Settled, hookimpl
from sideband.ops import Level, Origin

from ._rows import Row, ratio_of, report

IMPLEMENTATIONS = 5
CALLS = 2_000
ROUNDS = 15

EVENT = Settled("s1")
OP_CALL = OpCall("e1", "http.get", {"url": "https://example.org"}, Level.MONITORED, Origin())


async def implementation(event: object) -> None:
    """Return no result."""


async def floor() -> None:
    with anyio.move_on_after(5):
        for one in (implementation,) * IMPLEMENTATIONS:
            await one(EVENT)


async def microseconds(call: Callable[[], Awaitable[object]]) -> float:
    started = perf_counter()
    for _ in range(CALLS):
        await call()
    return (perf_counter() - started) / CALLS * 1e6


async def measure() -> dict[str, list[float]]:
    hooks, empty = HookRegistry(), HookRegistry()
    for number in range(IMPLEMENTATIONS):
        plugin = SimpleNamespace(settled=hookimpl(implementation), op_call=hookimpl(implementation))
        hooks.register(f"plugin-{number}", plugin, phase=Phase.GUARD)
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "floor": floor,
        "observe": lambda: hooks.observe(EVENT),
        "decide": lambda: hooks.decide(OP_CALL),
        "empty": lambda: empty.observe(EVENT),
    }
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):  # interleaved, so that other load affects all of them
        for name, call in calls.items():
            rounds[name].append(await microseconds(call))
    return rounds


def main() -> None:
    for backend in ("asyncio", "trio"):
        rounds = anyio.run(measure, backend=backend)
        middle = {name: median(times) for name, times in rounds.items()}
        rows = [
            Row(f"hook dispatch, {name}, {backend}", middle[name], "µs", middle["floor"], bound=1.5,
                ratio=ratio_of(rounds[name], rounds["floor"]))
            for name in ("observe", "decide")
        ]  # fmt: skip
        report(rows, backend=backend, **{f"{name}_us": round(value, 2) for name, value in middle.items()})


if __name__ == "__main__":
    main()
