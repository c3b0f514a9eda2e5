"""Compares what a run costs with each store: the embedded one, and those of `contrib` with a real server on loopback.

A run calls a tool ten times in a new session. The hosts of all stores are open at the same time, and take turns. The
servers sync, as those of users do, to the same disk as the embedded store.

Run: ``python -m benchmarks.stores``. Prints one line of JSON. There is no bound: the difference is that of a server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio
import sideband_postgres.plugin
import sideband_redis.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband_agent import Agent

from contrib.postgres.tests import server as postgres_server
from contrib.redis.tests import server as redis_server

from ._rows import Row, ratio_of, report
from .agent_runs import PLUGINS

ROUNDS = 40
SESSIONS, SESSION_ROUNDS = 50, 5
OTHERS = [one for one in PLUGINS if one.kind != "store"]


async def run(host: Host) -> None:
    async with Agent(host) as agent:
        result = await agent.invoke("go on")
        assert result.text == "All is done.", result


async def together(host: Host) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(SESSIONS):
            tasks.start_soon(run, host)


async def timed(hosts: dict[str, Host], rounds: int, act: Callable[[Host], Awaitable[None]]) -> dict[str, list[float]]:
    """Return the seconds of each round by store, without the first two."""
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds + 2):
        for name, host in hosts.items():
            began = perf_counter()
            await act(host)
            times[name].append(perf_counter() - began)
    return {name: found[2:] for name, found in times.items()}


async def measure(folder: Path, postgres: str, redis: str) -> list[Row]:
    stores = {
        "sqlite": (sideband_store_sqlite.plugin, {}),
        "postgres": (sideband_postgres.plugin, {"address": postgres}),
        "redis": (sideband_redis.plugin, {"address": redis}),
    }
    async with AsyncExitStack() as stack:
        hosts = {}
        for name, (module, table) in stores.items():
            settings = {"agent": {"model": "quiet:one", "context_window": 1_000_000}, "plugins": {name: table}}
            plugins = [*OTHERS, Plugin("store", name, module)]
            host = Host(home=folder / name, settings=settings, plugins=plugins, autoload=False)
            hosts[name] = await stack.enter_async_context(host)
        alone, many = await timed(hosts, ROUNDS, run), await timed(hosts, SESSION_ROUNDS, together)
    rows = []
    for name in stores:
        if name != "sqlite":
            embedded = "the embedded store"
            ratio = ratio_of(alone[name], alone["sqlite"])
            ours, floor = (median(one) * 1e3 for one in (alone[name], alone["sqlite"]))
            rows.append(Row(f"run with 10 tool calls, {name}", ours, "ms", floor, ratio=ratio, note=embedded))
            rates = [SESSIONS / median(one) for one in (many[name], many["sqlite"])]
            rows.append(Row(f"runs of {SESSIONS} sessions, {name}", rates[0], "/s", rates[1], note=embedded))
    return rows


def main() -> None:
    with (
        TemporaryDirectory() as folder,
        postgres_server.folder_of_server() as data,
        postgres_server.Server(data, fsync="on") as postgres,
        redis_server.folder_of_server(on_disk=True) as other_data,
        redis_server.Server(other_data) as redis,
    ):
        report(anyio.run(measure, Path(folder), postgres.address, redis.address))


if __name__ == "__main__":
    main()
