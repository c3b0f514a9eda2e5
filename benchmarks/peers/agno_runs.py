"""Runs of an agno agent, which stores nothing: in-process, and over HTTP in many concurrent sessions.

``agent_runs.py`` runs this script with the Python of the peers' environment and a mode. Prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

started = perf_counter()
from agno.agent import Agent  # noqa: E402  its import is measured
from agno.models.base import Model  # noqa: E402
from agno.models.openai import OpenAIChat  # noqa: E402
from agno.models.response import ModelResponse  # noqa: E402

IMPORTED = perf_counter() - started
TOOLS = 10
ROUNDS = 30


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@dataclass
class Quiet(Model):
    """A model that calls the tool ten times, then ends the run."""

    id: str = "quiet"

    async def ainvoke(self, messages: list[Any], **_: Any) -> ModelResponse:
        """Return the next answer."""
        done = sum(one.role == "tool" for one in messages)
        if done >= TOOLS:
            return ModelResponse(role="assistant", content="All is done.")
        function = {"name": "add", "arguments": f'{{"a": {done}, "b": 1}}'}
        return ModelResponse(
            role="assistant", tool_calls=[{"id": f"call_{done}", "type": "function", "function": function}]
        )

    def _unused(self, *_: Any, **__: Any) -> Any:
        # `Model` declares these as abstract, and a run without streaming calls `ainvoke` only.
        raise AssertionError("this benchmark calls `ainvoke` only")

    invoke = invoke_stream = ainvoke_stream = _unused
    _parse_provider_response = _parse_provider_response_delta = _unused


async def in_process() -> dict[str, float]:
    """Return the median duration of a run with ten tool calls, in milliseconds."""
    agent, times = Agent(model=Quiet(), tools=[add], telemetry=False), []
    for _ in range(ROUNDS):
        began = perf_counter()
        result = await agent.arun("go on")
        times.append(perf_counter() - began)
        assert result.content == "All is done.", result
    return {"run_ms": median(times[3:]) * 1e3}


async def over_http(port: int, sessions: int, runs: int) -> dict[str, float]:
    """Return the runs per second, with one tool call each, in concurrent sessions."""
    model = OpenAIChat(id="tools-1", base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
    agents = [Agent(model=model, tools=[add], session_id=f"s{number}", telemetry=False) for number in range(sessions)]

    async def several(agent: Agent) -> None:
        for _ in range(runs):
            result = await agent.arun("go on")
            assert result.content == "All is done.", result

    await several(agents[0])
    began = perf_counter()
    await asyncio.gather(*map(several, agents))
    return {"per_second": sessions * runs / (perf_counter() - began)}


def main() -> None:
    """Measure the selected mode."""
    mode, *numbers = sys.argv[1:]
    found = asyncio.run(in_process() if mode == "in_process" else over_http(*map(int, numbers)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**found, "peak_mb": peak, "import_s": IMPORTED}))


if __name__ == "__main__":
    main()
