"""The public agent API as plugin authors use it: a provider, a tool, a guard, a compaction strategy and an agent.

mypy checks this module in strict mode. ``assert_type`` fails if a type is lost. The ``type: ignore`` comments fail as
unused if an invalid call is accepted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import assert_type

from pydantic import BaseModel
from sideband import Host, Level, Plugin, SidebandError
from sideband.approvals import Approval, ApprovalRequest
from sideband.hooks import (
    AgentStart,
    Ask,
    ChatCommand,
    ChatCommands,
    Compacted,
    Compaction,
    Deny,
    GiveUp,
    ModelError,
    ObserveEvent,
    Patch,
    Retry,
    Section,
    Sections,
    ToolCall,
    ToolResult,
    TurnEnd,
    hookimpl,
)
from sideband.messages import (
    AssistantMessage,
    ImagePart,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    Usage,
    UserMessage,
    parse_message,
)
from sideband.plugins import AgentContext, PluginContext
from sideband.providers import (
    Finished,
    ModelInfo,
    ModelRequest,
    Prices,
    Provider,
    ProviderRefused,
    StreamEvent,
    TextDelta,
)
from sideband.tools import Tool, ToolContext, ToolOutput, ToolView, tool
from sideband_agent import Agent, AgentBusy, AgentPhase, Budget, RunResult, RunStatus


class Parrot:
    """A provider that repeats the last message."""

    name = "parrot"

    async def models(self, ctx: PluginContext) -> Sequence[ModelInfo]:
        """Return its only model."""
        return [ModelInfo(id=ctx.config.model, context_window=8_000, prices=Prices(input=0, output=0))]

    async def stream(self, request: ModelRequest, ctx: PluginContext) -> AsyncIterator[StreamEvent]:
        """Repeat the last message."""
        credential = await ctx.credential("parrot", "https://parrot.example")
        text = request.messages[-1].text
        if not text:
            raise ProviderRefused(self.name, "the message is empty", status=422, body=str(credential), hint="add text")
        yield TextDelta(text=text)
        yield Finished(message=AssistantMessage(content=(TextPart(text=text),), usage=Usage(output=len(text))))


def sideband_providers() -> list[Provider]:
    """Register the provider."""
    return [Parrot()]


class SummaryParams(BaseModel):
    """Parameters of ``notes.sum``."""

    texts: list[str]


@tool("notes.sum", level=Level.CONTROLLED, exclusive=True, timeout=60)
async def sum_up(params: SummaryParams, ctx: ToolContext) -> ToolOutput:
    """Summarize notes with a child agent, and store the summary."""
    await ctx.progress(current=0, total=len(params.texts), message="reading")
    child = await ctx.spawn_child("\n".join(params.texts), tools=[], share=0.1)
    if child.status != "completed":
        return ToolOutput(child.text, is_error=True)
    await ctx.dispatch("sql.execute", {"db": "notes.db", "sql": "INSERT INTO notes VALUES (:t)"}, key=f"{ctx.key}:keep")
    return ToolOutput([TextPart(text=child.text)], metadata={"cost": child.usage.cost, "call": ctx.call})


assert_type(sum_up, Tool)


def sideband_tools() -> list[Tool]:
    """Register the tool."""
    return [sum_up]


class Careful:
    """A guard, instantiated for each agent."""

    def __init__(self) -> None:
        self.failures = 0

    @hookimpl
    def agent_start(self, event: AgentStart) -> None:
        """Reset the state of the previous run."""
        self.failures = 0

    @hookimpl
    async def tool_call(self, event: ToolCall, ctx: AgentContext) -> Ask | Deny | None:
        """Ask before controlled tools; halt the run after repeated failures."""
        if self.failures > 5:
            return Deny(f"{event.tool} fails repeatedly", halt=True)
        return Ask(f"run {event.tool} in {ctx.session.id}?") if event.level >= Level.CONTROLLED else None

    @hookimpl
    def tool_result(self, event: ToolResult) -> Patch | None:
        """Count failures."""
        self.failures += event.is_error
        return Patch(note="try something else") if event.is_error else None


def sideband_guards() -> list[type]:
    """Register the guard."""
    return [Careful]


@hookimpl(before=["compaction"])
async def compaction(event: Compaction, ctx: AgentContext) -> Compacted | None:
    """Summarize with a cheap model."""
    if event.tokens_before < 1_000:
        return None
    messages = [dict(message) for message in event.messages]
    answer = parse_message(await ctx.dispatch("llm.generate", {"model": "cheap", "messages": messages}))
    return Compacted(answer.text, first_kept=event.first_kept)


@hookimpl
def model_error(event: ModelError) -> Retry | GiveUp | None:
    """Retry failures of the parrot twice."""
    if not event.model.startswith("parrot:"):
        return None
    return Retry(1.5, "overloaded") if event.attempt < 3 else GiveUp("unavailable", "try later")


@hookimpl
def sections(event: Sections) -> list[Section]:
    """Add a section to the system prompt."""
    return [Section("parrot", f"You are a parrot with {len(event.tools)} tools.")]


@hookimpl
async def turn_end(event: TurnEnd, ctx: AgentContext) -> None:
    """Store the index of the last turn in the session."""
    await ctx.session.append_custom("last", {"turn": event.index, "results": len(event.tool_results)})


async def recall(text: str, ctx: AgentContext) -> str:
    """Return the output of ``/recall``."""
    found = [message for message in ctx.session.messages() if text in message.text]
    if not found:
        ctx.compact("drop everything")
    return f"{len(found)} messages, {ctx.usage.cost} dollars"


@hookimpl
def chat_commands(event: ChatCommands) -> list[ChatCommand]:
    """Add ``/recall``."""
    return [ChatCommand("recall", "find messages", recall)]


def watch(event: ObserveEvent) -> None:
    """Print the events of an agent."""
    if isinstance(event, TurnEnd):
        assert_type(event.index, int)
        print(event.hook, event.run, event.message["role"])


async def approve(request: ApprovalRequest) -> Approval:
    """Approve tools below the level RESTRICTED."""
    print(request.question, request.effect)
    return Approval("allow" if request.level is not None and request.level < Level.RESTRICTED else "deny")


async def embed(module: object) -> str:
    """Run an embedded agent."""
    plugins = [Plugin("provider", "parrot", module), Plugin("tool", "notes", sum_up)]
    async with (
        Host(plugins=plugins) as host,
        Agent(
            host,
            model="parrot:grey",
            tools=["notes.*"],
            budget=Budget(money=1.0, calls=20),
            approver=approve,
            on_event=watch,
            guards={"careful": Careful},
        ) as agent,
    ):
        result = await agent.invoke("sum up", attachments=[ImagePart(media_type="image/png", data="")])
        assert_type(result, RunResult)
        assert_type(result.status, RunStatus)
        assert_type(result.usage, Usage)
        assert_type(agent.tools, ToolView)
        assert_type(agent.phase, AgentPhase)
        assert_type(await agent.compact("the numbers"), bool)
        assert_type(await agent.fork(), str)
        agent.steer("shorter", source="user")
        agent.follow_up("and in English")
        if result.status in ("failed", "parked"):
            assert_type(await agent.resume(), RunResult | None)
        await _look(agent, result)
        return result.text


async def _look(agent: Agent, result: RunResult) -> None:
    for message in result.messages:
        match message:
            case UserMessage():
                assert_type(message.source, str)
            case AssistantMessage():
                assert_type(message.tool_calls, tuple[ToolCallPart, ...])
            case ToolResultMessage():
                assert_type(message.is_error, bool)
    try:
        await agent.select_model("parrot:green")
        async with await agent.sessions.open(agent.session.id) as session:
            await session.rewind(None, summary="it had no result")
    except AgentBusy as busy:
        print(busy.hint)
    except SidebandError as error:
        print(error.as_dict()["code"])


async def wrong(agent: Agent, ctx: ToolContext) -> None:
    """Make calls that a type checker must reject."""
    await agent.invoke(5)  # type: ignore[arg-type]
    agent.steer(text=None)  # type: ignore[arg-type]
    await agent.fork(position="after")  # type: ignore[arg-type]
    await ctx.spawn_child("x", share="half")  # type: ignore[arg-type]
    print((await agent.invoke("x")).answer)  # type: ignore[attr-defined]
    Retry(None)  # type: ignore[arg-type]
    Plugin(kind="tool")  # type: ignore[call-arg]
    Budget(dollars=1)  # type: ignore[call-arg]
