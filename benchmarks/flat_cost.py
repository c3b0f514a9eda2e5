"""Checks that the cost of a turn, of opening an agent and of a ledger line does not depend on what a host has.

The floor is the same host with little: a session of 4 messages, a single tool, no further plugins, no secrets, no other
sessions, and an empty ledger. It is compared, in alternating rounds, with 200 plugins that each implement a hook of the
turn's end; 2,000 tools, all offered to the model; 2,000 skills, all offered; 5,000 known secrets; 1,000 other open
sessions; and a ledger of 300,000 lines in several segments (the design requires ten million, which take too long to
write). Nothing is compacted: a session of 1,000 messages shows what each message costs that is sent.

Run: ``python -m benchmarks.flat_cost [FOLDER]``, with a folder on the disk to measure. Prints one line of JSON.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from types import SimpleNamespace

import anyio
import sideband_skills.plugin
from sideband import Host, hookimpl
from sideband.ledger import Intent, Ledger
from sideband.plugins import Plugin
from sideband.tools import ToolContext, tool
from sideband_agent import Agent
from sideband_agent.sessions import Sessions

from ._rows import Row, ratio_of, report
from .agent_turn import MODEL, PLUGINS, TEXT, TURNS, Nothing, QuietModel, conversation
from .ledger import INTENT, OneDocument

SENT = 1_000
MANY_PLUGINS = 200
MANY_TOOLS = 2_000
MANY_SKILLS = 2_000
MANY_SECRETS = 5_000
MANY_SESSIONS = 1_000
LINES = 300_000
WRITTEN = 500
ROUNDS = 7
BOUND = 1.25  # 1.0 plus noise from other load
SENT_US = 2


class Listener:
    """A plugin that observes an event of a run, not of a turn."""

    @hookimpl
    async def agent_end(self, event: object) -> None:
        """Ignore the event."""


def one_tool(number: int) -> Plugin:
    """Return a plugin with a tool that is offered and never called."""

    @tool(f"idle_{number}", read_only=True)
    async def idle(params: Nothing, ctx: ToolContext) -> str:  # noqa: ARG001  a tool's signature
        """Do nothing."""
        return TEXT

    return Plugin("tool", f"idle_{number}", idle)


def write_skills(folder: Path) -> None:
    """Write skills of instructions only."""
    for number in range(MANY_SKILLS):
        skill = folder / f"idle-{number}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: idle-{number}\ndescription: {TEXT}\n---\n{TEXT}\n")


class Case:
    """A host with one agent.

    Args:
        home: the host's folder.
        plugins: plugins beside those of every case.
        messages: the number of messages in the agent's session.
        skills: a folder of skills, or ``None``.
        secrets: the number of known secrets.
        sessions: the number of other open sessions.
    """

    def __init__(
        self,
        home: Path,
        *plugins: Plugin,
        messages: int = 4,
        skills: Path | None = None,
        secrets: int = 0,
        sessions: int = 0,
    ) -> None:
        self.model = QuietModel()
        provider = Plugin("provider", "quiet", SimpleNamespace(sideband_providers=lambda: (self.model,)))
        loader = Plugin("loader", "skills", sideband_skills.plugin)
        settings = {"agent": {"model": MODEL, "context_window": 100_000_000}}
        self.host = Host(
            home=home,
            settings=settings,
            plugins=[*PLUGINS, loader, provider, *plugins],
            autoload=False,
            skill_dirs=() if skills is None else (skills,),
        )
        self._messages = messages
        self._secrets = secrets
        self._sessions = sessions
        self._agent: Agent

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open the host, the other sessions, and the session of the agent."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.host)
            for number in range(self._secrets):
                self.host.redactor.protect(f"secret-{number:06}-{number * 7919:012x}", f"secret_{number}")
            for _ in range(self._sessions):
                await stack.enter_async_context(Agent(self.host))
            async with await Sessions(self.host.store, self.host.home).create() as session:
                await session.append(*conversation(self._messages))
            self._agent = await stack.enter_async_context(Agent(self.host, session=session.id))
            await self.turn_ms()
            await self.opening_ms()
            yield

    async def turn_ms(self) -> float:
        """Return the processor time of a turn with one tool call. Wall-clock time is mostly disk time."""
        self.model.turns = TURNS
        began = process_time()
        result = await self._agent.invoke(TEXT)
        assert result.status == "completed", result.error
        return (process_time() - began) / TURNS * 1e3

    async def opening_ms(self) -> float:
        """Return the processor time to open and close an agent with a new session."""
        began = process_time()
        for _ in range(TURNS):
            async with Agent(self.host):
                pass
        return (process_time() - began) / TURNS * 1e3


async def measure_agents(folder: Path) -> list[Row]:
    write_skills(folder / "skill_folder")
    cases = {
        "small": Case(folder / "small"),
        f"{MANY_PLUGINS} plugins": Case(
            folder / "plugins", *(Plugin("hook", f"idle-{number}", Listener()) for number in range(MANY_PLUGINS))
        ),
        f"{MANY_TOOLS:,} tools": Case(folder / "tools", *map(one_tool, range(MANY_TOOLS))),
        f"{MANY_SKILLS:,} skills": Case(folder / "skills", skills=folder / "skill_folder"),
        f"{MANY_SECRETS:,} secrets": Case(folder / "secrets", secrets=MANY_SECRETS),
        f"{MANY_SESSIONS:,} other sessions": Case(folder / "sessions", sessions=MANY_SESSIONS),
        f"{SENT:,} messages": Case(folder / "messages", messages=SENT),
    }
    turns: dict[str, list[float]] = {name: [] for name in cases}
    openings: dict[str, list[float]] = {name: [] for name in cases}
    async with AsyncExitStack() as stack:
        for case in cases.values():
            await stack.enter_async_context(case.opened())
        # Collections would visit the objects of all cases in the time of any of them.
        gc.collect()
        gc.freeze()
        for _ in range(ROUNDS):  # interleaved; each round adds the same number of messages to all sessions
            for name, case in cases.items():
                turns[name].append(await case.turn_ms())
                openings[name].append(await case.opening_ms())
    sent, small = turns.pop(f"{SENT:,} messages"), turns.pop("small")
    rows = [_row(f"processor time of a turn, with {name}", times, small) for name, times in turns.items()]
    a_message = median((one - least) / SENT * 1e3 for one, least in zip(sent, small, strict=True))
    rows.append(Row("a message that is sent, for each turn", a_message, "µs", bound=SENT_US, is_absolute=True))
    small = openings.pop("small")
    openings.pop(f"{SENT:,} messages")
    return rows + [_row(f"opening an agent, with {name}", times, small) for name, times in openings.items()]


def _row(name: str, times: list[float], small: list[float]) -> Row:
    return Row(name, median(times), "ms", median(small), bound=BOUND, ratio=ratio_of(times, small))


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
    report([*await measure_agents(folder), *await measure_ledger(folder)])


def main() -> None:
    with TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        anyio.run(measure, Path(folder))


if __name__ == "__main__":
    main()
