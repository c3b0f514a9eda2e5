"""The parts of an agent that belong to one session, rebuilt whenever it switches sessions."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen
from sideband.approvals import Approver
from sideband.contexts import ApprovalMode
from sideband.host import HostPluginContext
from sideband.plugins import PluginContext
from sideband.settings import AgentSettings
from sideband.store import Store
from sideband.suggestions import did_you_mean
from sideband.tools import ToolView

from ._announcer import Announcer
from ._approval_mode import SessionApprovalMode
from ._budget import Budget
from ._child_sessions import ChildSessions
from ._compaction import Compactor
from ._contexts import AgentControls, AgentPluginContext, host_context
from ._history import VisibleHistory
from ._last_answers import LastAnswers
from ._model_steps import ModelCalls, ModelSteps, ToolSelector
from ._phase import CurrentPhase
from ._queue_changes import QueueChanges
from ._queues import Queues
from ._router import Router
from ._runner import Runner
from ._session_tools import OwnTools, SessionTools
from ._spending import Spending
from ._system_prompt import SystemPrompt
from ._tools import (
    PLUGIN_TOOL_SECONDS,
    LongResults,
    OfferedSkills,
    Replays,
    ToolCalls,
    ToolContexts,
    ToolEffects,
    ToolQuestions,
)
from ._turn_loop import TurnLoop
from .sessions import Session

if TYPE_CHECKING:
    from sideband import Host

_log = logging.getLogger("sideband.agent")


@frozen
class SessionParts:
    """The parts of an agent that belong to one session.

    Attributes:
        session: the session, open for writing.
        tools: its tools.
        skills: the skills that the model sees.
        approval: the approval mode.
        spending: usage and the remaining budget.
        compactor: compacts the conversation.
        runner: executes runs.
    """

    session: Session
    tools: SessionTools = field(repr=False)
    skills: OfferedSkills = field(repr=False)
    approval: SessionApprovalMode = field(repr=False)
    spending: Spending = field(repr=False)
    compactor: Compactor = field(repr=False)
    runner: Runner = field(repr=False)

    @property
    def system_prompt(self) -> str:
        """The system prompt of the run; empty between runs."""
        return self.runner.current.system_prompt if self.runner.current else ""


@frozen
class SessionPartsMaker:
    """A factory for the parts of an agent that belong to a session.

    Args:
        agent: the agent, as contexts use it.
        host: the host.
        settings: the table ``[agent]``.
        store: the store of its sessions.
        hooks: its guards and hooks.
        announcer: emits events.
        phase: its current phase.
        queues: its queued messages and inputs.
        queue_changes: emits the events of their changes.
        approver: answers requests for approval; ``None`` without an approver.
        approval_mode: the approval mode of sessions for which none was selected, if none is configured.
        limit: the budget of a session.
        wanted: the tools that may be called; all if ``None``.
        sources: the sources of tools to which it is restricted.
        own: the tools that the program offers.
        own_tools: the names of those that it is about to offer.
        folder: its working directory.
        channel: the channel through which the user talks to the agent.
    """

    agent: AgentControls = field(repr=False)
    host: Host = field(repr=False)
    settings: AgentSettings = field(repr=False)
    store: Store = field(repr=False)
    announcer: Announcer = field(repr=False)
    phase: CurrentPhase = field(repr=False)
    queues: Queues = field(repr=False)
    queue_changes: QueueChanges = field(repr=False)
    approver: Approver | None
    approval_mode: ApprovalMode | None
    limit: Budget
    wanted: Sequence[str] | None
    sources: Sequence[str] | None
    own: OwnTools = field(repr=False)
    own_tools: Collection[str | None]
    folder: Path
    channel: str

    async def make(self, session: Session) -> SessionParts:
        """Make the parts for a session that is open for writing."""
        tools = await self._tools()
        host, inherited = self.host, self.agent.inherited
        own = host.context_for("agent")
        approval = (
            inherited.approval
            if inherited
            else await SessionApprovalMode.of(
                self.store, session.id, self.announcer, self.agent.hooks, self.approval_mode
            )
        )
        skills = OfferedSkills(host.tools, tools)
        spending = Spending.of(session, self.limit, inherited.allowance if inherited else None)
        results = LongResults(self.store, session.id, session.parent, self.settings.output_tokens)
        history = VisibleHistory(session, self.agent.hooks)
        compactor = Compactor(
            session=session,
            history=history,
            tools=tools,
            settings=self.settings,
            hooks=self.agent.hooks,
            announcer=self.announcer,
            phase=self.phase,
            host=own,
        )
        calls = self._tool_calls(tools, skills, results, spending, approval=approval, own=own)
        turns = TurnLoop(
            session=session,
            history=history,
            steps=self._model_steps(session, history, tools, compactor, spending),
            answers=self._answers,
            hooks=self.agent.hooks,
            tools=calls,
            results=results,
            compactor=compactor,
            queues=self.queues,
            queue_changes=self.queue_changes,
            spending=spending,
            announcer=self.announcer,
            redactor=host.redactor,
            sync=host.sync,
            max_turns=self.settings.turns,
        )
        runner = Runner(
            session=session,
            history=history,
            router=self._router,
            prompt=self._prompt(session, skills),
            turns=turns,
            tools=calls,
            compactor=compactor,
            spending=spending,
            hooks=self.agent.hooks,
            announcer=self.announcer,
            redactor=host.redactor,
            sync=host.sync,
            outer=inherited.run if inherited else None,
        )
        return SessionParts(session, tools, skills, approval, spending, compactor, runner)

    async def _tools(self) -> SessionTools:
        inherited = self.agent.inherited
        if inherited is None:  # the parent has already reported what a child does not know
            self._report_unknown(await self.host.tools.view())
        rules = self.host.settings.settings.tools
        wanted = ToolView().narrow(self.wanted, sources=self.sources, without=rules.disabled)
        wanted = wanted.without_unnamed(self.wanted or (), explicit=rules.explicit)
        parent = inherited.tools if inherited else None
        return SessionTools(self.host.tools, parent, wanted, self.own, self._source_context)

    def _report_unknown(self, known: ToolView) -> None:
        """Report wanted tools that neither exist nor may come from a source."""
        may_appear = {*self.own_tools, *(one.source.name for one in self.host.tools.session_sources)}
        rules = self.host.settings.settings.tools
        of_settings = {" in `[tools] disabled`": rules.disabled, " in `[tools] explicit`": rules.explicit}
        for place, names in {"": self.wanted or (), **of_settings}.items():
            for name in known.unknown(names):
                space = name.replace("__", ".").partition(".")[0]
                is_of_source = (self.host.tools.owner(space) or "").startswith("source ")
                if not is_of_source and may_appear.isdisjoint([name, space]):
                    similar = did_you_mean(name, [one.name for one in known.tools])
                    _log.warning("unknown tool `%s`%s%s", name, place, similar)

    def _source_context(self, plugin: PluginContext | None) -> PluginContext:
        return AgentPluginContext(host_context(plugin) or self.host.context_for("agent"), self.agent)

    def _tool_calls(
        self,
        tools: SessionTools,
        skills: OfferedSkills,
        results: LongResults,
        spending: Spending,
        *,
        approval: SessionApprovalMode,
        own: HostPluginContext,
    ) -> ToolCalls:
        host = self.host
        questions = ToolQuestions(host.approvals, self.approver, host.tools)
        replays = Replays(host.broker, host.ledger.folder, host.settings.settings.policy.resume, questions)
        return ToolCalls(
            hooks=self.agent.hooks,
            announcer=self.announcer,
            effects=ToolEffects(host.broker, results, replays, self.settings.tool_seconds),
            contexts=ToolContexts(
                agent=self.agent,
                broker=host.broker,
                children=ChildSessions(self.store, spending.session.id, host.ledger.folder, host.approvals, host.sync),
                tools=tools,
                of_skills=own,
                results=results,
                skills=skills,
            ),
            tools=tools,
            questions=questions,
            approval=approval,
            parallel=self.settings.parallel,
            spending=spending,
            redactor=host.redactor,
            settings=host.settings.settings.tools,
        )

    def _model_steps(
        self, session: Session, history: VisibleHistory, tools: SessionTools, compactor: Compactor, spending: Spending
    ) -> ModelSteps:
        calls = ModelCalls(
            broker=self.host.broker,
            hooks=self.agent.hooks,
            announcer=self.announcer,
            settings=self.settings,
            session=session.id,
            parent=self.agent.inherited.own.call if self.agent.inherited else None,
            history=history,
            tools=tools,
        )
        return ModelSteps(
            calls=calls,
            selector=ToolSelector(self.agent.hooks, tools, history, compactor, self.host.settings.settings.tools),
            hooks=self.agent.hooks,
            announcer=self.announcer,
            fallbacks=self.settings.fallbacks,
            compactor=compactor,
            spending=spending,
        )

    def _router(self, session: Session, tools: SessionTools) -> Router:
        return Router(
            session=session,
            hooks=self.agent.hooks,
            announcer=self.announcer,
            broker=self.host.broker,
            redactor=self.host.redactor,
            tools=tools,
            channel=self.channel,
            seconds=self.settings.tool_seconds or PLUGIN_TOOL_SECONDS,
        )

    def _answers(self, spending: Spending) -> LastAnswers:
        return LastAnswers(
            hooks=self.agent.hooks,
            spending=spending,
            redactor=self.host.redactor,
            rounds=self.settings.rounds,
            turns=self.settings.turns,
        )

    def _prompt(self, session: Session, skills: OfferedSkills) -> SystemPrompt:
        return SystemPrompt(
            hooks=self.agent.hooks,
            home=self.host.home,
            folder=self.folder,
            channel=self.channel,
            session=session.id,
            skills=skills,
            text=self.agent.inherited.system_prompt if self.agent.inherited else None,
        )
