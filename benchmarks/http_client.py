"""Measures requests of the op family `http`, 100 concurrently, compared with plain aiohttp and httpx in the same run.

A server in a separate process answers with a small JSON text. The floor is plain aiohttp with one session; plain httpx
with one client is the common choice. ``transport`` is the transport below the op family, with httpx's interface over
each library. ``host`` is the complete op: grant, guards, address check, redaction and ledger lines of a MONITORED op.

Run: ``PYTHONPATH=core/src python benchmarks/http_client.py``. Prints one line of JSON: requests per second and ratios.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import aiohttp
import anyio
import httpx
from sideband import Host
from sideband_http._transport._choice import TransportName, transport_named
from sideband_http._transport._interface import Peer, TransportOptions
from sideband_http._transport._trust import Trust

AT_ONCE = 100
REQUESTS = 1_000
ROUNDS = 4
SERVER = """
import asyncio
HEAD = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 27\\r\\n\\r\\n"
ANSWER = HEAD + b'{"answer":"a short text 1"}'

class Answering(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.rest = transport, b""
    def data_received(self, data):
        *whole, self.rest = (self.rest + data).split(b"\\r\\n\\r\\n")
        self.transport.write(ANSWER * len(whole))

async def main():
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(1e9)

asyncio.run(main())
"""

Request = Callable[[], Awaitable[object]]


async def per_second(request: Request) -> float:
    left = iter(range(REQUESTS))

    async def work() -> None:
        for _ in left:
            await request()

    started = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(work)
    return REQUESTS / (perf_counter() - started)


def through(transport: httpx.AsyncBaseTransport, url: str) -> Request:
    peer = Peer("127.0.0.1", ip_address("127.0.0.1"))

    async def request() -> None:
        message = httpx.Request("GET", url)
        peer.attach(message)
        response = await transport.handle_async_request(message)
        await response.aread()
        await response.aclose()

    return request


async def measure(url: str, folder: Path) -> dict[str, float]:
    tls = await Trust().context(http2=False)
    options = TransportOptions(tls=tls, http2=False, max_connections=AT_ONCE)
    names: tuple[TransportName, ...] = ("aiohttp", "httpx")
    transports = {name: transport_named(name)(options) for name in names}
    hosts = {name: host_with(name, folder / name) for name in names}
    limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=AT_ONCE)) as session,
        httpx.AsyncClient(limits=limits, trust_env=False) as client,
        hosts["aiohttp"],
        hosts["httpx"],
    ):

        async def bare() -> None:
            async with session.get(url) as response:
                await response.json()

        async def usual() -> None:
            (await client.get(url)).json()

        requests: dict[str, Request] = {"bare_aiohttp": bare, "bare_httpx": usual}
        for name in names:
            requests[f"transport_{name}"] = through(transports[name], url)
            requests[f"host_{name}"] = op_of(hosts[name], url)
        rounds: dict[str, list[float]] = {name: [] for name in requests}
        for _ in range(ROUNDS):  # interleaved, so that other load affects all of them
            for name, request in requests.items():
                rounds[name].append(await per_second(request))
        for transport in transports.values():
            await transport.aclose()
    found: dict[str, float] = {name: round(median(times[1:])) for name, times in rounds.items()}
    for name in ("transport_aiohttp", "host_aiohttp", "transport_httpx", "host_httpx"):
        found[f"{name}_of_bare_aiohttp"] = round(found[name] / found["bare_aiohttp"], 2)
        found[f"{name}_of_bare_httpx"] = round(found[name] / found["bare_httpx"], 2)
    return found


def host_with(name: TransportName, home: Path) -> Host:
    settings: dict[str, Any] = {"plugins": {"http": {"transport": name, "max_connections": 2 * AT_ONCE}}}
    return Host(home=home, settings=settings)


def op_of(host: Host, url: str) -> Request:
    return lambda: host.op("http.get", {"url": url})


def main() -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    assert server.stdout is not None
    port = int(server.stdout.readline())
    try:
        with TemporaryDirectory() as folder:
            print(json.dumps(anyio.run(measure, f"http://127.0.0.1:{port}/", Path(folder))))
    finally:
        server.kill()
        server.communicate()


if __name__ == "__main__":
    os.environ.pop("http_proxy", None)
    main()
