"""Measures the duration of an agent's turn with one tool call, compared with a floor, and how it scales.

The floor is the minimum work of such a turn: a model call and a tool call, each a keyed dispatch of a no-op, and two
messages appended durably to the session's store. Both use the same broker, ledger and store in the same run; the model
and the tool of the turn do nothing either. Sessions of several sizes are measured. The whole session is sent with each
model call, so the duration may grow linearly with the number of messages, but no faster. Also measures the memory of an
open agent, and the time to open a session compared with reading its records.

Run: ``python -m benchmarks.agent_turn [FOLDER]``, with a folder on the disk to measure. Prints one line of JSON per
backend.
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import anyio
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, OpContext, OpFamily, op
from sideband.hooks import TurnStart
from sideband.messages import (
    AssistantMessage,
    ToolCallPart,
    ToolResultMessage,
    Usage,
    UserMessage,
    parse_message,
    to_data,
)
from sideband.plugins import Plugin, PluginContext
from sideband.providers import Finished, ModelInfo, ModelRequest, StreamEvent
from sideband.tools import ToolContext, tool
from sideband_agent import Agent
from sideband_agent.sessions import MessageEntry, Sessions

MESSAGES = (10, 100, 1_000)
ENTRIES = (1_000, 10_000)
TURNS = 8
ROUNDS = 7
AGENTS = 10
TEXT = "About forty words of text, as in a typical message of a conversation. " * 4
MODEL = "quiet:one"


class Nothing(BaseModel):
    """Parameters that the op ignores."""

    text: str = ""


@op("nothing.ask", record=["text"])
async def ask(params: Nothing, ctx: OpContext) -> str:  # noqa: ARG001  an op's signature
    """Do nothing, like a model call."""
    return TEXT


@op("nothing.act", idempotent=False, record=["text"])
async def act(params: Nothing, ctx: OpContext) -> str:  # noqa: ARG001  an op's signature
    """Do nothing, like a tool call: it is not idempotent, so its intent is on disk first."""
    return TEXT


@tool("quiet", read_only=True)
async def quiet(params: Nothing, ctx: ToolContext) -> str:  # noqa: ARG001  a tool's signature
    """Do nothing."""
    return TEXT


class QuietModel:
    """A model that calls the tool in each of ``turns`` turns, then ends the run."""

    name = "quiet"

    def __init__(self) -> None:
        self.turns = 0
        self._ids = count()

    async def models(self, ctx: PluginContext) -> tuple[ModelInfo, ...]:  # noqa: ARG002  a provider's signature
        return (ModelInfo(id="one", context_window=100_000_000),)

    async def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncIterator[StreamEvent]:  # noqa: ARG002
        self.turns -= 1
        call = ToolCallPart(id=f"call_{next(self._ids)}", name="quiet", arguments={"text": TEXT})
        content, stop = ((call,), "tool_calls") if self.turns >= 0 else (TEXT, "end")
        yield Finished(message=AssistantMessage.model_validate({"content": content, "stop": stop, "usage": USED}))


USED = Usage(input=1_000, output=10)
PLUGINS = [
    Plugin("op", "llm", sideband_llm.plugin),
    Plugin("op", "nothing", SimpleNamespace(sideband_ops=lambda: OpFamily("nothing", (ask, act)))),
    Plugin("tool", "quiet", quiet),
    Plugin("store", "sqlite", sideband_store_sqlite.plugin),
]


def conversation(messages: int) -> list[MessageEntry]:
    """Return a conversation of repeated exchanges: a question, a call, its result and an answer."""
    entries = []
    for number in range(-(-messages // 4)):
        call = ToolCallPart(id=f"old_{number}", name="quiet", arguments={"text": TEXT})
        exchange = (
            UserMessage(content=TEXT),
            AssistantMessage(content=(call,), stop="tool_calls", usage=USED),
            ToolResultMessage(call=call.id, tool="quiet", content=TEXT),
            AssistantMessage(content=TEXT, usage=USED),
        )
        entries += [MessageEntry(message=one, run=f"run_{number}", step="0") for one in exchange]
    return entries


async def floor(host: Host, names: Callable[[], str]) -> None:
    """Make two keyed dispatches and two durable appends."""
    for name in ("nothing.ask", "nothing.act"):
        key = names()
        await host.op(name, {"text": TEXT}, key=key)
        await host.store.append("floor", [{"type": "message", "key": key, "text": TEXT}])


async def floor_ms(host: Host, names: Callable[[], str]) -> float:
    started = perf_counter()
    for _ in range(TURNS):
        await floor(host, names)
    return (perf_counter() - started) / TURNS * 1e3


async def turn_ms(host: Host, model: QuietModel, messages: int) -> float:
    """Return the median time from the start of a turn to the start of the next, in a session of a given size."""
    began: list[float] = []

    def note(event: object) -> None:
        if isinstance(event, TurnStart):
            began.append(perf_counter())

    async with await Sessions(host.store, host.home).create() as session:
        await session.append(*conversation(messages))
    async with Agent(host, session=session.id, on_event=note) as agent:
        model.turns = TURNS
        result = await agent.invoke(TEXT)
        assert result.status == "completed", result.error
    return median(later - earlier for earlier, later in pairwise(began)) * 1e3


def message_us() -> float:
    """Return the time to serialize and parse a message: the minimum cost of sending and receiving it."""
    messages = [entry.message for entry in conversation(1_000)]
    started = perf_counter()
    for message in messages:
        parse_message(json.loads(json.dumps(to_data(message))))
    return (perf_counter() - started) / len(messages) * 1e6


async def measure_turns(host: Host, model: QuietModel) -> dict[str, float]:
    numbers = count()
    cases: dict[str, Callable[[], Awaitable[float]]] = {
        "floor": lambda: floor_ms(host, lambda: f"floor:{next(numbers)}"),
        **{f"turn_{size}": lambda size=size: turn_ms(host, model, size) for size in MESSAGES},  # type: ignore[misc]
    }
    rounds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):  # interleaved, so that other load affects all of them
        for name, measured in cases.items():
            rounds[name].append(await measured())
    found = {f"{name}_ms": round(median(times[1:]), 3) for name, times in rounds.items()}
    few, some, many = (found[f"turn_{size}_ms"] for size in MESSAGES)
    found["turn_ratio"] = round(few / found["floor_ms"], 2)
    found["message_us"] = round(message_us(), 1)
    for name, less, more, sizes in (("few", few, some, MESSAGES[:2]), ("many", some, many, MESSAGES[1:])):
        found[f"turn_us_per_message_{name}"] = round((more - less) / (sizes[1] - sizes[0]) * 1e3, 1)
    return found


async def agents_kb(host: Host, messages: int) -> float:
    """Return the memory of an additional open agent with a session of a given size."""
    names = []
    for _ in range(2 * AGENTS):
        async with await Sessions(host.store, host.home).create() as session:
            await session.append(*conversation(messages))
        names.append(session.id)
    async with AsyncExitStack() as stack:
        for name in names[:AGENTS]:  # exclude what is loaded only once
            await stack.enter_async_context(Agent(host, session=name))
        gc.collect()
        tracemalloc.start()
        for name in names[AGENTS:]:
            await stack.enter_async_context(Agent(host, session=name))
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return round(kept / AGENTS / 1024, 1)


async def measure_memory(host: Host) -> dict[str, float]:
    return {"agent_kb": await agents_kb(host, 0), "agent_of_1000_kb": await agents_kb(host, 1_000)}


async def measure_opening(host: Host) -> dict[str, float]:
    sessions, found = Sessions(host.store, host.home), {}
    for size in ENTRIES:
        async with await sessions.create() as session:
            await session.append(*conversation(size))
        times: dict[str, list[float]] = {"read": [], "open": []}
        for _ in range(3):
            started = perf_counter()
            await host.store.read(f"session/{session.id}")
            read = perf_counter()
            async with await sessions.open(session.id):
                times["open"].append(perf_counter() - read)
            times["read"].append(read - started)
        for name, seconds in times.items():
            found[f"{name}_{size}_ms"] = round(median(seconds) * 1e3, 1)
        found[f"open_{size}_ratio"] = round(median(times["open"]) / median(times["read"]), 2)
    return found


async def measure(folder: Path) -> dict[str, float]:
    model = QuietModel()
    settings = {"agent": {"model": MODEL, "context_window": 100_000_000}}
    plugins = [*PLUGINS, Plugin("provider", "quiet", SimpleNamespace(sideband_providers=lambda: (model,)))]
    async with Host(home=folder / "home", settings=settings, plugins=plugins, autoload=False) as host:
        return {**await measure_turns(host, model), **await measure_memory(host), **await measure_opening(host)}


def main() -> None:
    with TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        for backend in ("asyncio", "trio"):
            found: dict[str, Any] = anyio.run(measure, Path(folder, backend), backend=backend)
            print(json.dumps({"backend": backend, **found}))


if __name__ == "__main__":
    main()
