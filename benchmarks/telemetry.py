"""Measures what `sideband-otel` adds to a run: installed but off, and on, with a collector in another process.

A run calls a tool ten times in a new session. The hosts are open at the same time, and take turns. All spans of the
runs are sent to the collector, and the metrics once.

Run: ``python -m benchmarks.telemetry``. Prints one line of JSON. Bound: a run takes 1.02 times as long if telemetry is
off. There is no bound for the rest: most of it is the SDK's work for 36 spans and as many values of metrics.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio
import sideband_otel.plugin
from sideband import Host, Plugin
from sideband_agent import Agent

from ._rows import Row, ratio_of, report
from .agent_runs import PLUGINS

ROUNDS = 150
COLLECTOR = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
OTEL = Plugin("hook", "otel", sideband_otel.plugin)


@contextmanager
def collector() -> Iterator[str]:
    """Yield the endpoint of a collector that discards what it gets."""
    with subprocess.Popen([sys.executable, "-c", COLLECTOR], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


async def run(host: Host) -> None:
    async with Agent(host) as agent:
        result = await agent.invoke("go on")
        assert result.text == "All is done.", result


async def measure(folder: Path) -> list[Row]:
    kinds = {"without": ([], {}), "off": ([OTEL], {"enabled": False}), "on": ([OTEL], {"enabled": True})}
    times: dict[str, list[float]] = defaultdict(list)
    async with AsyncExitStack() as stack:
        hosts = {}
        for name, (plugins, table) in kinds.items():
            settings = {"agent": {"model": "quiet:one", "context_window": 1_000_000}, "plugins": {"otel": table}}
            host = Host(home=folder / name, settings=settings, plugins=[*PLUGINS, *plugins], autoload=False)
            hosts[name] = await stack.enter_async_context(host)
        for number in range(ROUNDS + 5):
            for name, host in hosts.items():
                began = perf_counter()
                await run(host)
                if number >= 5:
                    times[name].append(perf_counter() - began)
    floor = median(times["without"]) * 1e3
    return [
        Row(
            f"run with 10 tool calls, telemetry {name}",
            median(times[name]) * 1e3,
            "ms",
            floor,
            bound=bound,
            ratio=ratio_of(times[name], times["without"]),
            note="without the plugin",
        )
        for name, bound in {"off": 1.02, "on": None}.items()
    ]


def main() -> None:
    with TemporaryDirectory() as folder, collector() as endpoint:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
        report(anyio.run(measure, Path(folder)))


if __name__ == "__main__":
    main()
