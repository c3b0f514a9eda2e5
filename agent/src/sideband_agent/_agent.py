"""The agent: a session, a model, tools and guards, and one run at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import anyio
from sideband.approvals import Approver
from sideband.asking import Asker
from sideband.contexts import ApprovalMode
from sideband.hooks import HookRegistry, Settled
from sideband.messages import Attachment
from sideband.settings import AgentSettings, ThinkingLevel
from sideband.tools import Tool, ToolSource

from ._agent_choices import AgentChoices
from ._agent_hooks import agent_hooks
from ._agent_programs import AgentPrograms
from ._agent_queues import AgentQueues
from ._agent_tools import AgentTools
from ._announcer import Announcer
from ._attachments import checked_input
from ._budget import Budget
from ._child_sessions import ChildSession
from ._children import Children
from ._errors import InputEmpty
from ._event_stream import EventStream
from ._inherited import Inherited
from ._listening import Listener
from ._memory_store import MemoryStore
from ._phase import AgentPhase, CurrentPhase
from ._queue_changes import QueueChanges
from ._queues import QueueMode, Queues, checked_mode
from ._run import RunResult
from ._session_parts import SessionPartsMaker
from ._session_switcher import SessionSwitcher
from ._session_tools import OwnTools
from .sessions import Sessions

if TYPE_CHECKING:
    from sideband import Host


class Agent(AgentChoices, AgentPrograms, AgentQueues, AgentTools):
    """An agent that calls a model, runs its tools and stores the conversation. Use it with ``async with``.

    An agent has one run at a time: methods that need an idle agent raise ``AgentBusy`` immediately while it is busy.

    Args:
        host: an open host.
        model: ``provider:model``; if ``None``, the session's last model, otherwise the configured one.
        session: the id or name of a session to continue; a new one if ``None``.
        tools: the tools that it may call; if ``None``, the configured ones, otherwise all.
        sources: the sources of tools to which it is restricted, such as ``plugin memory`` or ``skill *``.
        own_tools: tools, and sources of tools, of this agent alone; see ``offer``.
        channel: the channel through which the user talks to the agent, such as ``cli``.
        budget: the limits of the whole session; if ``None``, the configured ones.
        approver: answers this agent's requests for approval; ``None`` for the host's approver.
        approval_mode: the approval mode of sessions for which the user selected none, if none is configured.
        asker: asks the user what its tools want to know; ``None`` if no user can be asked.
        on_event: called with every observe event, after the plugins; must not block.
        event_history: the number of events to keep for readers that ask for them later; 0 for none. See ``events``.
        guards: additional guards by name: classes, instantiated for this agent and each child.
        steering_mode: whether the model sees ``all`` messages of ``steer`` before its next step, or ``one`` before each
            step; if ``None``, the configured mode, by default ``all``.
        follow_up_mode: whether each input of ``follow_up`` begins a run of its own, ``one``, or ``all`` that wait begin
            one run, if they have the same source; if ``None``, the configured mode, by default ``one``.
        folder: the working directory; the current one if ``None``.

    Example:
        >>> async def main():
        ...     async with Host() as host, Agent(host, model="anthropic:claude-sonnet-4-5") as agent:
        ...         result = await agent.invoke("How many stars has pytest-dev/pluggy?")
        ...         return result.status, result.text
    """

    def __init__(
        self,
        host: Host,
        *,
        model: str | None = None,
        session: str | None = None,
        tools: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
        own_tools: Iterable[Tool | ToolSource] = (),
        channel: str = "cli",
        budget: Budget | None = None,
        approver: Approver | None = None,
        asker: Asker | None = None,
        approval_mode: ApprovalMode | None = None,
        on_event: Listener | None = None,
        event_history: int = 0,
        guards: Mapping[str, type] | None = None,
        steering_mode: QueueMode | None = None,
        follow_up_mode: QueueMode | None = None,
        folder: Path | None = None,
    ) -> None:
        if not isinstance(folder, Path | None):
            raise TypeError(f"`folder`: expected a Path, got a {type(folder).__name__}")
        self.host = host
        self.settings: AgentSettings = host.settings.settings.agent
        self.channel = channel
        self.approver = approver
        self.asker = asker
        self.guards = dict(guards or {})
        self.folder = (folder or Path.cwd()).absolute()
        self.hooks: HookRegistry = agent_hooks(host, self, self.guards, on_event, approver)
        self._queue_changes = QueueChanges(self.hooks, host.redactor, host.start_task)
        self.queues = Queues(
            self.settings.steering if steering_mode is None else checked_mode("steering_mode", steering_mode),
            self.settings.follow_ups if follow_up_mode is None else checked_mode("follow_up_mode", follow_up_mode),
            self._queue_changes.note,
        )
        self.wants_shutdown = False
        self._events = EventStream(self.hooks, event_history) if event_history else None
        self._model = model
        self._wanted_session = session
        self._own_tools = tuple(own_tools)
        self._phase = CurrentPhase()
        self._announcer = Announcer(self.hooks)
        self._children = Children(
            self._announcer, host.redactor, self.depth, self.settings.depth, partial(_ChildAgent, self)
        )
        store = self.inherited.own.store if self.inherited else host.store
        self.sessions = Sessions(store, host.home, redact=partial(host.redactor.data, sensitive_keys=False))
        maker = SessionPartsMaker(
            agent=self,
            host=host,
            settings=self.settings,
            store=store,
            announcer=self._announcer,
            phase=self._phase,
            queues=self.queues,
            queue_changes=self._queue_changes,
            approver=approver or host.approver,
            approval_mode=approval_mode,
            limit=budget if budget is not None else Budget(**self.settings.budget.model_dump()),
            wanted=tools if tools is not None else self.settings.tools,
            sources=sources,
            own=OwnTools(),
            own_tools=[getattr(one, "name", None) for one in self._own_tools],
            folder=self.folder,
            channel=channel,
        )
        self._switcher = SessionSwitcher(self.sessions, maker)

    async def __aenter__(self) -> Self:
        self._is_closed = False
        try:
            creates = self.inherited is not None
            await self._switcher.open(self._wanted_session, creates=creates, own_tools=self._own_tools)
            if self._wanted_session is not None and not creates:
                await self._restored(self.settings.thinking, None)
        except BaseException:
            self._end_events()
            raise
        self._queue_changes.is_open = True
        if self._queue_changes.events:
            await self._queue_changes.emit()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._queue_changes.close()
            await self._switcher.close()
        finally:
            self._end_events()

    # Runs

    async def invoke(
        self, text: str, *, attachments: Iterable[Attachment] = (), source: str = "interactive"
    ) -> RunResult:
        """Begin a run with an input and run it to its end, followed by a run for each input that was queued meanwhile.

        Args:
            text: the user's input.
            attachments: images, files and recordings to send with it; see ``attachment_of``.
            source: ``interactive``, ``api``, ``plugin``, ``schedule`` or ``agent``.

        Returns:
            The result of the last run. A failed or parked run is returned too: it can be resumed.

        Raises:
            AgentBusy: if another operation is in progress.
            InputEmpty: if there is neither text nor an attachment.
            AttachmentRefused: if an attachment contains a known secret, which must not be sent to a model.
            ModelMissing: if no model is configured.
            StoreError: if the input could not be stored.
        """
        queued = checked_input(self.host.redactor, text, attachments)
        if not text.strip() and not queued.attachments:
            raise InputEmpty
        with self._claim("begin a run"):
            result = await self._follow_up(await self._parts.runner.begin(queued, source, self.model, self.thinking))
        await self._settle()
        return result

    async def resume(self) -> RunResult | None:
        """Continue the session's last run from the last stored step, if it has not completed.

        Recorded steps are not repeated. Inputs that were queued meanwhile become runs after it, as in ``invoke``.

        Returns:
            The result of the last run, or ``None`` if there is nothing to resume.

        Raises:
            AgentBusy: if another operation is in progress.
            ModelMissing: if no model is configured.
        """
        with self._claim("resume a run"):
            entry = self.session.unfinished_run()
            if entry is None:
                return None
            result = await self._follow_up(await self._parts.runner.resume(entry, self.model, self.thinking))
        await self._settle()
        return result

    async def invoke_queued(self) -> RunResult | None:
        """Begin a run with the next queued input, and one for each further input, as after a run of ``invoke``.

        Returns:
            The result of the last run, or ``None`` if nothing is queued.

        Raises:
            AgentBusy: if another operation is in progress.
            ModelMissing: if no model is configured; the input stays in its queue.
        """
        with self._claim("begin a run"):
            result = await self._begin_queued()
            if result is None:
                return None
            result = await self._follow_up(result)
        await self._settle()
        return result

    async def _follow_up(self, result: RunResult) -> RunResult:
        """Begin a run for each queued input, as long as they complete."""
        while result.status == "completed" and (next_result := await self._begin_queued()) is not None:
            result = next_result
        return result

    async def _begin_queued(self) -> RunResult | None:
        """Run the next queued input, if there is one."""
        if not self.queues:
            return None
        model, queued = self.model, self.queues.next_input()
        source = "interactive" if queued.source == "user" else "plugin"
        return await self._parts.runner.begin(queued, source, model, self.thinking)

    async def _settle(self) -> None:
        if not self.queues and self.is_idle:
            await self._announcer.emit(Settled, self.session.id)

    def abort(self, reason: str = "") -> None:
        """Cancel the run. Completed steps are kept; interrupted tool calls are reported as interrupted."""
        self._parts.runner.abort(reason)

    def shutdown(self) -> None:
        """Request the end of the agent once it is idle, by setting ``wants_shutdown``."""
        self.wants_shutdown = True

    async def wait_for_idle(self) -> None:
        """Wait until the agent is idle. Must not be called within a run, which would wait for itself."""
        await self._phase.wait_for_idle()

    async def compact(self, instructions: str = "") -> bool:
        """Compact the conversation now.

        Args:
            instructions: what the summary should keep.

        Returns:
            Whether the conversation was compacted: ``False`` if there was nothing to compact or a plugin denied it.

        Raises:
            AgentBusy: if another operation is in progress.
        """
        with self._claim("compact", AgentPhase.COMPACTION):
            return await self._parts.compactor.compact(self.model, instructions)

    def ask_for_compaction(self, instructions: str = "") -> None:
        """Request a compaction at the next opportunity: between two turns, or after the run."""
        self._parts.compactor.ask(instructions)

    async def spawn_child(
        self, prompt: str, *, tools: Sequence[str] | None = None, share: float = 0.5, call: str | None = None
    ) -> RunResult:
        """Run a task in a child agent and wait for it. See ``AgentContext.spawn_child``.

        Args:
            prompt, tools, share: see there.
            call: the tool call that the child works for, ``session:run:step``; recorded with the child's effects.
        """
        return await self.run_child(ChildSession.in_memory(call), prompt, tools=tools, share=share)

    async def run_child(self, own: ChildSession, task: str, *, tools: Sequence[str] | None, share: float) -> RunResult:
        """Run a task in a child agent with this session, or continue with it, and wait for it."""
        await self._parts.runner.build_prompt()
        result: RunResult | None = None
        try:
            result = await self._children.run(task, self._parts, tools=tools, share=share, own=own)
        finally:
            if (result is None or result.requests) and isinstance(own.store, MemoryStore):  # it cannot continue
                with anyio.CancelScope(shield=True):
                    await self.host.approvals.withdraw(sessions=[own.id])
        return result

    # Sessions and reloading

    async def new_session(self) -> str:
        """Switch to a new session and return its id."""
        with self._claim("switch sessions"):
            async with self._moving():
                return await self._switcher.new()

    async def switch_session(self, session: str) -> None:
        """Switch to another session.

        Raises:
            AgentBusy: if another operation is in progress.
            StructureRefused: if a plugin denies it.
        """
        with self._claim("switch sessions"):
            async with self._moving():
                await self._switcher.switch(session)

    async def fork(self, entry: str | None = None, *, position: Literal["at", "before"] = "at") -> str:
        """Switch to a copy of the session's path up to an entry, and return the copy's id.

        Args:
            entry: the id of the entry; the last one if ``None``.
            position: whether the copy ends ``at`` the entry or ``before`` it.
        """
        with self._claim("fork"):
            async with self._moving():
                return await self._switcher.fork(entry, position=position)

    async def rewind(self, entry: str | None, *, summary: str = "") -> None:
        """Rewind the conversation to an entry: the next entry follows it. Nothing is deleted.

        Args:
            entry: the id of the entry; the beginning if ``None``.
            summary: what has been done since, shown to the model; empty for none.

        Raises:
            AgentBusy: if another operation is in progress.
            EntryNotFound: if the session does not contain the entry.
            StructureRefused: if a plugin denies it.
        """
        with self._claim("rewind"):
            async with self._moving():
                await self._switcher.rewind(entry, summary=summary)

    async def reload(self) -> None:
        """Reload skills, prompts and tools. The session stays open."""
        with self._claim("reload"):
            self.host.tools.forget_skills()
            await self._switcher.reload()


class _ChildAgent(Agent):
    """An agent that works for a parent, in a session that ends with it, or with the call that it works for."""

    def __init__(self, parent: Agent, inherited: Inherited, tools: Sequence[str]) -> None:
        self.inherited = inherited
        self._thinking = parent.thinking
        super().__init__(
            parent.host,
            model=parent.model,
            session=inherited.own.id,
            tools=tools,
            channel=parent.channel,
            approver=parent.approver,
            asker=parent.asker,
            guards=parent.guards,
            folder=parent.folder,
        )

    @property
    def thinking(self) -> ThinkingLevel | None:
        """Its parent's level of thinking."""
        return self._thinking
