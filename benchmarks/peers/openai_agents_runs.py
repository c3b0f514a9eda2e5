"""Runs of an agent of openai-agents, which stores nothing or its sessions in SQLite.

``agent_runs.py`` runs this script with the Python of the peers' environment.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

started = perf_counter()
from agents import (  # noqa: E402  its import is measured
    Agent,
    Model,
    ModelResponse,
    OpenAIChatCompletionsModel,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI  # noqa: E402
from openai.types.responses import (  # noqa: E402
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

IMPORTED = perf_counter() - started

from _runs import TOOLS, Run, add, main  # noqa: E402


class Quiet(Model):
    """A model that calls the tool ten times, then ends the run."""

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002, ARG002  the signature is given
        """Return the next answer."""
        done = sum(isinstance(one, dict) and one.get("type") == "function_call_output" for one in input)
        if done < TOOLS:
            item: Any = ResponseFunctionToolCall(
                call_id=f"call_{done}", name="add", arguments=f'{{"a": {done}, "b": 1}}', type="function_call"
            )
        else:
            text = ResponseOutputText(text="All is done.", type="output_text", annotations=[])
            item = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        """Not used: `Model` declares it as abstract."""
        raise AssertionError("this benchmark does not stream")


async def make(mode: str, port: int, folder: Path | None) -> Run:
    """Make the function that is timed."""
    set_tracing_disabled(True)
    if mode == "in_process":
        model: Model = Quiet()
    else:
        client = AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
        model = OpenAIChatCompletionsModel("tools-1", client)
    agent = Agent(name="peer", model=model, tools=[function_tool(add)])
    stored: dict[int, SQLiteSession] = {}

    async def run(number: int) -> object:
        if folder is not None and number not in stored:
            stored[number] = SQLiteSession(f"s{number}", folder / "sessions.db")
        return (await Runner.run(agent, "go on", session=stored.get(number), max_turns=TOOLS + 2)).final_output

    return run


if __name__ == "__main__":
    main(make, IMPORTED)
