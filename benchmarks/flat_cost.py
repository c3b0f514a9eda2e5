"""Checks that the cost of a turn and of a ledger line does not depend on the amount of existing data.

The floor is the same host with little data: a session of 10 entries, a single tool, no further plugins, and an empty
ledger. It is compared, in alternating rounds, with a session of 10,000 entries of which only the latest are sent, as
after a compaction; 200 plugins that each implement a hook for another event; 2,000 tools of which one is sent; and a
ledger of 300,000 lines in several segments (the design requires ten million, which take too long to write).

Run: ``python -m benchmarks.flat_cost [FOLDER]``, with a folder on the disk to measure. Prints one line of JSON.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from types import SimpleNamespace

import anyio
from sideband import Host, hookimpl
from sideband.ledger import Intent, Ledger
from sideband.plugins import Plugin
from sideband.tools import ToolContext, tool
from sideband_agent import Agent
from sideband_agent.sessions import CompactionEntry, Sessions

from ._rows import Row, ratio_of, report
from .agent_turn import MODEL, PLUGINS, TEXT, TURNS, Nothing, QuietModel, conversation
from .ledger import INTENT, OneDocument

ENTRIES = 10_000
MANY_PLUGINS = 200
MANY_TOOLS = 2_000
LINES = 300_000
WRITTEN = 500
ROUNDS = 7
BOUND = 1.25  # 1.0 plus noise from other load


class Listener:
    """A plugin that implements no hook of a turn."""

    @hookimpl
    async def model_select(self, event: object) -> None:
        """Ignore the selection of another model."""


def one_tool(number: int) -> Plugin:
    """Return a plugin with a tool that is never called."""

    @tool(f"idle_{number}", read_only=True)
    async def idle(params: Nothing, ctx: ToolContext) -> str:  # noqa: ARG001  a tool's signature
        """Do nothing."""
        return TEXT

    return Plugin("tool", f"idle_{number}", idle)


class Case:
    """A host with one agent."""

    def __init__(self, home: Path, plugins: list[Plugin]) -> None:
        self.model = QuietModel()
        provider = Plugin("provider", "quiet", SimpleNamespace(sideband_providers=lambda: (self.model,)))
        settings = {"agent": {"model": MODEL, "context_window": 100_000_000}}
        self.host = Host(home=home, settings=settings, plugins=[*PLUGINS, provider, *plugins], autoload=False)
        self._agent: Agent

    @asynccontextmanager
    async def opened(self, entries: int) -> AsyncIterator[None]:
        """Open a session with a number of entries that are replaced by a summary."""
        async with self.host:
            async with await Sessions(self.host.store, self.host.home).create() as session:
                await session.append(*conversation(entries), CompactionEntry(summary=TEXT))
            async with Agent(self.host, session=session.id, tools=["quiet"]) as self._agent:
                await self.turn_ms()
                yield

    async def turn_ms(self) -> float:
        """Return the processor time of a turn with one tool call. Wall-clock time is mostly disk time."""
        self.model.turns = TURNS
        began = process_time()
        result = await self._agent.invoke(TEXT)
        assert result.status == "completed", result.error
        return (process_time() - began) / TURNS * 1e3


async def measure_turns(folder: Path) -> list[Row]:
    cases = {
        "small": (Case(folder / "small", []), 4),
        f"a session of {ENTRIES:,} entries": (Case(folder / "entries", []), ENTRIES),
        f"{MANY_PLUGINS} plugins": (
            Case(folder / "plugins", [Plugin("hook", f"idle-{number}", Listener()) for number in range(MANY_PLUGINS)]),
            4,
        ),
        f"{MANY_TOOLS:,} tools": (Case(folder / "tools", [one_tool(number) for number in range(MANY_TOOLS)]), 4),
    }
    rounds: dict[str, list[float]] = {name: [] for name in cases}
    async with AsyncExitStack() as stack:
        for case, entries in cases.values():
            await stack.enter_async_context(case.opened(entries))
        for _ in range(ROUNDS):  # interleaved; each round adds the same number of messages to all sessions
            for name, (case, _) in cases.items():
                rounds[name].append(await case.turn_ms())
    small = rounds.pop("small")
    return [
        Row(
            f"processor time of a turn, with {name}",
            median(times),
            "ms",
            median(small),
            bound=BOUND,
            ratio=ratio_of(times, small),
        )
        for name, times in rounds.items()
    ]


async def line_us(ledger: Ledger) -> float:
    """Return the time to write a line without syncing it."""
    started = perf_counter()
    for _ in range(WRITTEN):
        await ledger.intent(Intent(effect=ledger.new_effect_id(), **INTENT), durable=False)
    return (perf_counter() - started) / WRITTEN * 1e6


async def measure_ledger(folder: Path) -> list[Row]:
    async with Ledger(folder / "short", OneDocument()) as short, Ledger(folder / "long", OneDocument()) as long:
        for _ in range(LINES // WRITTEN):
            await line_us(long)
        little, much = [], []
        for _ in range(ROUNDS):
            little.append(await line_us(short))
            much.append(await line_us(long))
    name = f"a ledger line, after {LINES:,} lines"
    return [Row(name, median(much), "µs", median(little), bound=BOUND, ratio=ratio_of(much, little))]


async def measure(folder: Path) -> None:
    report([*await measure_turns(folder), *await measure_ledger(folder)])


def main() -> None:
    with TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        anyio.run(measure, Path(folder))


if __name__ == "__main__":
    main()
