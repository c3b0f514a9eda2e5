"""Compares complete agent runs with agno, openai-agents and langchain, each with sessions in SQLite and without.

Sideband stores the session and the ledger of all effects. Measures a run with ten tool calls in-process, runs with one
tool call over HTTP in 100 concurrent sessions against a server that answers immediately, and the peak memory of the
latter. Each is a separate process, alternating with the peers.

Run: ``python -m benchmarks.agent_runs``. Prints one line of JSON. Bounds: a run takes no longer than that of the best
peer that stores, and twice as long as agno's that stores nothing; three times the throughput over HTTP of the best peer
that stores, and 1.5 times that of agno that stores nothing; 70 MB.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import anyio
import sideband_llm.plugin
import sideband_openai.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage
from sideband.plugins import Plugin, PluginContext
from sideband.providers import Finished, ModelInfo, ModelRequest, StreamEvent
from sideband.tools import ToolContext, tool
from sideband_agent import Agent

from ._peers import ENVIRONMENT, MISSING, model_server, peer
from ._rows import Row, report

TOOLS = 10
SESSIONS = 100
RUNS = 3
ROUNDS = 3
REPEATED = 12


class Numbers(BaseModel):
    """The numbers to add."""

    a: int
    b: int


@tool("add", read_only=True)
async def add(params: Numbers, ctx: ToolContext) -> int:  # noqa: ARG001  a tool's signature
    """Add two numbers."""
    return params.a + params.b


class QuietModel:
    """A model that calls the tool ten times, then ends the run."""

    name = "quiet"

    async def models(self, ctx: PluginContext) -> tuple[ModelInfo, ...]:  # noqa: ARG002  a provider's signature
        return (ModelInfo(id="one", context_window=1_000_000),)

    async def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncIterator[StreamEvent]:  # noqa: ARG002
        # Each run starts a session, so all earlier messages belong to this run.
        done = sum(isinstance(one, ToolResultMessage) for one in request.messages)
        call = ToolCallPart(id=f"call_{done}", name="add", arguments={"a": done, "b": 1})
        content, stop = ((call,), "tool_calls") if done < TOOLS else ("All is done.", "end")
        yield Finished(message=AssistantMessage.model_validate({"content": content, "stop": stop}))


PLUGINS = [
    Plugin("op", "llm", sideband_llm.plugin),
    Plugin("tool", "add", add),
    Plugin("provider", "quiet", SimpleNamespace(sideband_providers=lambda: (QuietModel(),))),
    Plugin("provider", "openai", sideband_openai.plugin),
    Plugin("store", "sqlite", sideband_store_sqlite.plugin),
]


def make_host(home: Path, model: str, port: int = 0) -> Host:
    openai = {"base_url": f"http://127.0.0.1:{port}/v1", "api": "chat", "local": False}
    settings = {"agent": {"model": model, "context_window": 1_000_000}, "plugins": {"openai": openai}}
    return Host(home=home, settings=settings, plugins=PLUGINS, autoload=False)


async def in_process(home: Path) -> dict[str, float]:
    """Return the median duration of a run with ten tool calls in a new session, in milliseconds."""
    times = []
    async with make_host(home, "quiet:one") as host:
        for _ in range(REPEATED):
            began = perf_counter()  # the peers make an agent and a session for each run too
            async with Agent(host) as agent:
                result = await agent.invoke("go on")
                times.append(perf_counter() - began)
                assert result.text == "All is done.", result
    return {"run_ms": median(times[2:]) * 1e3}


async def over_http(home: Path, port: int, sessions: int, runs: int) -> dict[str, float]:
    """Return the runs per second, with one tool call each, in concurrent sessions."""

    async def several(host: Host) -> None:
        async with Agent(host) as agent:
            for _ in range(runs):
                result = await agent.invoke("go on")
                assert result.text == "All is done.", result

    async with make_host(home, "openai:tools-1", port) as host:
        await several(host)
        began = perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(sessions):
                tasks.start_soon(several, host)
        return {"per_second": sessions * runs / (perf_counter() - began)}


def ours(*arguments: object) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.agent_runs", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=ENVIRONMENT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def child(mode: str, *numbers: str) -> None:
    # The default distribution has no click and rich, which httpx imports where the tools of the tests have them.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    with TemporaryDirectory() as folder:
        if mode == "in_process":
            found = anyio.run(in_process, Path(folder))
        else:
            found = anyio.run(over_http, Path(folder), *map(int, numbers))
    gc.collect()
    print(json.dumps({**found, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


PEERS = ("agno", "openai_agents", "langchain")


def main() -> None:
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    with model_server() as port:
        for _ in range(ROUNDS):  # interleaved, so that other load affects all of them
            found["run"].append(ours("in_process"))
            found["http"].append(ours("over_http", port, SESSIONS, RUNS))
            for name in PEERS:
                for storage in ("stored", "bare"):
                    arguments = f"{name}_runs", "in_process", storage
                    found[f"run {name} {storage}"].append(peer(*arguments) or {})
                    arguments = f"{name}_runs", "over_http", storage
                    found[f"http {name} {storage}"].append(peer(*arguments, port, SESSIONS, RUNS) or {})

    def figure(name: str, key: str) -> Any:
        values = [one[key] for one in found[name] if key in one]
        return median(values) if values else None

    def best(prefix: str, key: str, choose: Callable[..., Any]) -> Any:
        values = [figure(f"{prefix} {name} stored", key) for name in PEERS]
        return choose((one for one in values if one is not None), default=None)

    run, http, rate = figure("run", "run_ms"), figure("http", "per_second"), "per_second"
    report(
        [
            Row("run with 10 tool calls, in-process (best peer that stores)", run, "ms",
                best("run", "run_ms", min), bound=1, note=MISSING),
            Row("the same (agno, stores nothing)", run, "ms", figure("run agno bare", "run_ms"), bound=2, note=MISSING),
            Row("runs over HTTP, 100 concurrent sessions (best peer that stores)", http, "runs/s",
                best("http", rate, max), bound=3, note=MISSING),
            Row("the same (agno, stores nothing)", http, "runs/s", figure("http agno bare", rate), bound=1.5,
                note=MISSING),
            Row("peak memory of 100 sessions (agno with SQLite)", figure("http", "peak_mb"), "MB",
                figure("http agno stored", "peak_mb"), bound=70, is_absolute=True),
        ],
        peers={name: found[name] for name in found if " " in name},
    )  # fmt: skip


if __name__ == "__main__":
    child(*sys.argv[1:]) if sys.argv[1:] else main()
