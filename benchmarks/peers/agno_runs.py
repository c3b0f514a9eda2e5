"""Runs of an agno agent, which stores nothing or its sessions in SQLite.

``agent_runs.py`` runs this script with the Python of the peers' environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

started = perf_counter()
from agno.agent import Agent  # noqa: E402  its import is measured
from agno.models.base import Model  # noqa: E402
from agno.models.openai import OpenAIChat  # noqa: E402
from agno.models.response import ModelResponse  # noqa: E402

IMPORTED = perf_counter() - started

from _runs import TOOLS, Run, add, main  # noqa: E402


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


async def make(mode: str, port: int, folder: Path | None) -> Run:
    """Make the function that is timed."""
    options: dict[str, Any] = {}
    if folder is not None:
        from agno.db.sqlite import SqliteDb

        options["db"] = SqliteDb(db_file=str(folder / "agno.db"))
    if mode == "in_process":
        model: Model = Quiet()
    else:
        model = OpenAIChat(id="tools-1", base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
    agents: dict[int, Agent] = {}

    async def run(number: int) -> object:
        if number not in agents:
            agents[number] = Agent(model=model, tools=[add], session_id=f"s{number}", telemetry=False, **options)
        return (await agents[number].arun("go on")).content

    return run


if __name__ == "__main__":
    main(make, IMPORTED)
