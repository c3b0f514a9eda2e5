"""What an agent needs for one session, put together; made anew whenever it goes over to another session."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from attrs import define, field, frozen
from sideband.broker import Progress
from sideband.host import HostPluginContext
from sideband.messages import AssistantMessage, ToolResultMessage, Usage
from sideband.tools import Tool, ToolView

from ._budget import Allowance, Budget
from ._compaction._compactor import Compactor
from ._contexts import ToolCallContext
from ._history._visible import Conversation
from ._model_steps._model_calls import ModelCalls, Question
from ._model_steps._model_steps import ModelSteps
from ._run import Run
from ._runner import Runs
from ._system_prompt import Prompts
from ._tools._long_results import Outputs
from ._tools._tool_calls import ToolCalls
from ._tools._tool_effects import ToolEffects
from ._turns import Engine
from .sessions import CustomEntry, MessageEntry, RunEntry, Session

if TYPE_CHECKING:
    from ._agent import Agent

__all__ = ["Lineage", "Wiring", "wire"]

_log = logging.getLogger("sideband.agent")


@frozen
class Lineage:
    """What a child has of its parent.

    Attributes:
        depth: how many agents stand above it.
        call: the tool call that it works for, ``session:run:step`` of its parent; ``None`` if it is no tool's.
        allowance: its share of the parent's budget.
        system_prompt: the parent's, to the byte.
        offered: the tools that the parent's model is told about, to the byte.
    """

    depth: int
    call: str | None
    allowance: Allowance
    system_prompt: str = field(repr=False)
    offered: ToolView = field(repr=False)


@define(eq=False)
class Wiring:
    """The parts of an agent that belong to one session."""

    session: Session
    usage: Usage
    allowance: Allowance
    outputs: Outputs
    prompts: Prompts
    engine: Engine
    runs: Runs


async def wire(agent: Agent, session: Session, limit: Budget, wanted: Sequence[str] | None) -> Wiring:
    """Put together what ``agent`` needs for ``session``.

    Args:
        agent: whose.
        session: open for writing.
        limit: what the session may use in all.
        wanted: the tools that may be called; ``None`` for all.
    """
    host, settings, lineage = agent.host, agent.settings, agent.lineage
    everything = await host.tools.view()
    offered = lineage.offered if lineage else everything
    view = offered if wanted is None else offered.narrow(wanted)
    for name in everything.unknown(wanted or ()):
        _log.warning("there is no tool `%s`", name)
    usage, used = _spent(session)
    outputs = Outputs(agent.store, session.id, session.parent, settings.output_tokens)
    conversation = Conversation(session, agent.hooks)
    compactor = Compactor(agent, conversation)
    tools = ToolCalls(
        hooks=agent.hooks,
        announcer=agent.announcer,
        effects=ToolEffects(host.broker, outputs, settings.tool_seconds),
        context=partial(_tool_context, agent),
        view=view,
        offered=offered if lineage else view,
        approver=agent.approver,
        parallel=settings.parallel,
        charge=partial(_charge_call, agent),
    )
    steps = ModelSteps(
        calls=ModelCalls(host.broker, agent.hooks, agent.announcer),
        hooks=agent.hooks,
        announcer=agent.announcer,
        fallbacks=settings.fallbacks,
        question=partial(_question, agent, conversation, tools),
        compact=compactor.compact_within_run,
    )
    engine = Engine(agent, conversation, steps, tools, compactor)
    return Wiring(
        session=session,
        usage=usage,
        allowance=lineage.allowance if lineage else Allowance(limit, used=used),
        outputs=outputs,
        prompts=Prompts(agent.hooks, host.home, agent.folder),
        engine=engine,
        runs=Runs(agent, engine),
    )


def _tool_context(
    agent: Agent, tool: Tool | None, call: str, step: str, on_progress: Callable[[Progress], None]
) -> ToolCallContext:
    base = agent.host.tools.context(tool) if tool else None
    if not isinstance(base, HostPluginContext):
        base = agent.host.context_for("agent")
    return ToolCallContext(base, agent, tool.name if tool else "", call, step, on_progress)


def _charge_call(agent: Agent) -> None:
    agent.allowance.check("calls", "seconds")
    agent.allowance.charge(calls=1)


async def _question(agent: Agent, conversation: Conversation, tools: ToolCalls, run: Run, step: str) -> Question:
    settings = agent.settings
    options = {
        "system": run.system_prompt,
        "tools": [schema.model_dump() for schema in tools.offered.schemas()],
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "thinking": settings.thinking,
        "cache_key": agent.session.id,
    }
    return Question(
        model=run.model,
        messages=conversation.messages(),
        options={name: value for name, value in options.items() if value not in (None, "", [])},
        session=agent.session.id,
        run=run.id,
        step=step,
        parent=agent.parent_call,
    )


def _spent(session: Session) -> tuple[Usage, Budget]:
    """What a session has used before, on all its branches."""
    usage, calls, seconds = Usage(), 0, 0.0
    began: dict[str, str] = {}
    for entry in session.tree.entries:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            usage += entry.message.usage
        elif isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage):
            calls += not entry.message.metadata.keys().isdisjoint(("ms", "replayed", "unknown"))
        elif isinstance(entry, CustomEntry) and entry.kind == "usage":
            usage += _usage(entry.data)
        elif isinstance(entry, RunEntry) and entry.status == "started":
            began[entry.run] = entry.time
        elif isinstance(entry, RunEntry) and entry.run in began:
            seconds += _seconds(began.pop(entry.run), entry.time)
    return usage, Budget(usage.cost or 0.0, float(usage.context), float(calls), seconds)


def _usage(data: object) -> Usage:
    try:
        return Usage.model_validate(data)
    except ValueError:  # what a file says
        return Usage()


def _seconds(began: str, ended: str) -> float:
    try:
        return max(0.0, (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds())
    except ValueError:
        return 0.0
