"""What a turn of an agent with one tool call costs, as a ratio to what it can't avoid, and how that grows.

The floor is what the turn must do whoever does it: a model call and a tool call, each a keyed dispatch of an op that
does nothing, and the message that each leads to, appended durably to the session's store. All through the same broker,
ledger and store, in the same run; the model and the tool of the turn do nothing either. It is measured with little and
with much in the session: all of that is sent with each model call, so the cost may grow with it, each message costing
the same, and no faster. Then: the memory of an open agent, and the time to open a session beside reading its records.

Run: ``python -m benchmarks.agent_turn [FOLDER]``, with a folder on the disk that is meant. Prints
one line of JSON.
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
TEXT = "Some forty words that somebody said in the course of a conversation. " * 4
MODEL = "quiet:one"


class Nothing(BaseModel):
    """No parameters."""

    text: str = ""


@op("nothing.ask", record=["text"])
async def ask(params: Nothing, ctx: OpContext) -> str:  # noqa: ARG001  an op's signature
    """Do nothing, as a model call."""
    return TEXT


@op("nothing.act", idempotent=False, record=["text"])
async def act(params: Nothing, ctx: OpContext) -> str:  # noqa: ARG001  an op's signature
    """Do nothing, as a tool call: what might have happened twice is on the disk before it does."""
    return TEXT


@tool("quiet", read_only=True)
async def quiet(params: Nothing, ctx: ToolContext) -> str:  # noqa: ARG001  a tool's signature
    """Do nothing."""
    return TEXT


class QuietModel:
    """Asks for the tool in each of ``turns`` turns, and then ends."""

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


def said(messages: int) -> list[MessageEntry]:
    """A conversation of so many messages: a question, a call, its result, an answer, and again."""
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
    """Two keyed dispatches, and two durable appends."""
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
    """The median time from the beginning of a turn to that of the next one, in a session of so many messages."""
    began: list[float] = []

    def note(event: object) -> None:
        if isinstance(event, TurnStart):
            began.append(perf_counter())

    async with await Sessions(host.store, host.home).create() as session:
        await session.append(*said(messages))
    async with Agent(host, session=session.id, on_event=note) as agent:
        model.turns = TURNS
        result = await agent.invoke(TEXT)
        assert result.status == "completed", result.error
    return median(later - earlier for earlier, later in pairwise(began)) * 1e3


def message_us() -> float:
    """One message made data and JSON, and read back: what sending and receiving it costs at the least."""
    messages = [entry.message for entry in said(1_000)]
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
    for _ in range(ROUNDS):  # interleaved, so that other load on the machine hits all of them
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
    """What one more open agent keeps in memory, its session of so many messages included."""
    names = []
    for _ in range(2 * AGENTS):
        async with await Sessions(host.store, host.home).create() as session:
            await session.append(*said(messages))
        names.append(session.id)
    async with AsyncExitStack() as stack:
        for name in names[:AGENTS]:  # not what the first one has to load
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
            await session.append(*said(size))
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
