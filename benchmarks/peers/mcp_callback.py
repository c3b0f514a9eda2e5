"""The same four messages with the MCP SDK: a tool over standard input and output that calls its client once.

``skill_call.py`` runs this script with the Python of the peers' environment. Prints one line of JSON: the median
duration of a call in microseconds, and the calls per second with 64 and 1,000 calls in flight.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CreateMessageResult, SamplingMessage, TextContent

CALLS = 200
TOGETHER = {64: 256, 1_000: 1_000}


def serve() -> None:
    """Run the server, which corresponds to the worker."""
    server = MCPServer("peer")

    @server.tool()
    async def one(n: int, ctx: Context) -> str:
        """Call the client once."""
        message = SamplingMessage(role="user", content=TextContent(type="text", text=f"get {n}"))
        answer = await ctx.session.create_message([message], max_tokens=10)
        return answer.content.text

    server.run("stdio")


async def answer(*_: object) -> CreateMessageResult:
    """Answer the callback, which corresponds to the op."""
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="ok"), model="peer")


async def together(call: Callable[[], Awaitable[object]], waiting: int, calls: int) -> float:
    """Return the calls per second with a number of calls in flight."""

    async def several() -> None:
        for _ in range(calls // waiting):
            await call()

    started = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(waiting):
            tasks.start_soon(several)
    return calls / (perf_counter() - started)


async def measure() -> dict[str, float]:
    """Return all figures."""
    parameters = StdioServerParameters(command=sys.executable, args=[__file__, "serve"])
    async with Client(stdio_client(parameters), sampling_callback=answer, mode="legacy") as client:

        async def call() -> None:
            result = await client.call_tool("one", {"n": 1})
            assert not result.is_error, result

        times = []
        for _ in range(CALLS):
            started = perf_counter()
            await call()
            times.append(perf_counter() - started)
        found = {"call_us": median(times) * 1e6}
        for waiting, calls in TOGETHER.items():
            found[f"{waiting}_per_second"] = await together(call, waiting, calls)
        return found


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        print(json.dumps(anyio.run(measure)))
