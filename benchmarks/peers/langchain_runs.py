"""Runs of an agent of langchain, which stores nothing or its checkpoints in SQLite.

``agent_runs.py`` runs this script with the Python of the peers' environment.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

started = perf_counter()
from langchain.agents import create_agent  # noqa: E402  its import is measured
from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage, ToolMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

IMPORTED = perf_counter() - started

from _runs import TOOLS, Run, add, main  # noqa: E402


class Quiet(BaseChatModel):
    """A model that calls the tool ten times, then ends the run."""

    @property
    def _llm_type(self) -> str:
        return "quiet"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        """Return the model itself, which knows the tool."""
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        done = sum(isinstance(one, ToolMessage) for one in messages)
        if done < TOOLS:
            calls = [{"name": "add", "args": {"a": done, "b": 1}, "id": f"call_{done}"}]
            answer = AIMessage(content="", tool_calls=calls)
        else:
            answer = AIMessage(content="All is done.")
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _agenerate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        return self._generate(messages)


async def make(mode: str, port: int, folder: Path | None) -> Run:
    """Make the function that is timed."""
    if mode == "in_process":
        model: BaseChatModel = Quiet()
    else:
        model = ChatOpenAI(model="tools-1", base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
    options: dict[str, Any] = {}
    if folder is not None:
        import aiosqlite
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        options["checkpointer"] = AsyncSqliteSaver(await aiosqlite.connect(folder / "checkpoints.db"))
    agent = create_agent(model, [add], **options)
    runs: dict[int, int] = {}

    async def run(number: int) -> object:
        runs[number] = runs.get(number, 0) + 1
        thread = f"s{number}" if folder is not None else f"s{number}-{runs[number]}"
        found = await agent.ainvoke(
            {"messages": [("user", "go on")]},
            {"configurable": {"thread_id": thread}, "recursion_limit": 4 * TOOLS},
        )
        return found["messages"][-1].content

    return run


if __name__ == "__main__":
    main(make, IMPORTED)
