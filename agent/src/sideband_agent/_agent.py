"""The agent: a session, a model, tools and guards, and one run at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from sideband.hooks import HookRegistry, ModelSelect, Settled
from sideband.messages import ImagePart, Usage
from sideband.settings import AgentSettings
from sideband.tools import ToolView

from ._agent_hooks import Listener, agent_hooks
from ._announcer import Announcer
from ._budget import Allowance, Budget
from ._children import Children
from ._errors import InputEmpty, ModelMissing
from ._inherited import Inherited
from ._memory_store import MemoryStore
from ._phase import AgentPhase, CurrentPhase
from ._queues import Queued, Queues
from ._run import Run, RunResult
from ._session_parts import SessionParts, SessionPartsMaker
from ._session_switcher import SessionSwitcher
from ._tools import ToolApprover
from .sessions import ModelEntry, Session, Sessions

if TYPE_CHECKING:
    from sideband import Host


class Agent:
    """Talks with a model, runs the tools that it asks for, and keeps what was said. Used as ``async with``.

    One run at a time: what needs an idle agent raises ``AgentBusy`` at once while one is under way.

    Args:
        host: an open host.
        model: ``provider:model``; ``None``: the session's last one, else the configured one.
        session: the id or name of a session to go on with; ``None``: a new one.
        tools: the tools that it may call; ``None``: as configured, else all.
        channel: where its user is, ``cli`` for instance.
        budget: what the session may use in all; ``None``: as configured.
        approver: puts a guard's question about a tool call to a person; ``None`` if nobody can be asked.
        on_event: gets every event that is only told, right after the plugins.
        guards: guards besides the installed ones, by name: classes, made anew for this agent and each child.
        folder: the working directory; ``None``: the current one.

    Example:
        >>> async def main():
        ...     async with Host() as host, Agent(host, model="anthropic:claude-sonnet-4-5") as agent:
        ...         result = await agent.invoke("How many stars has pytest-dev/pluggy?")
        ...         return result.status, result.text
    """

    inherited: Inherited | None = None

    def __init__(
        self,
        host: Host,
        *,
        model: str | None = None,
        session: str | None = None,
        tools: Sequence[str] | None = None,
        channel: str = "cli",
        budget: Budget | None = None,
        approver: ToolApprover | None = None,
        on_event: Listener | None = None,
        guards: Mapping[str, type] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.host = host
        self.settings: AgentSettings = host.settings.settings.agent
        self.channel = channel
        self.approver = approver
        self.guards = dict(guards or {})
        self.folder = (folder or Path.cwd()).absolute()
        self.queues = Queues()
        self.hooks: HookRegistry = agent_hooks(host, self, self.guards, on_event)
        self.wants_shutdown = False
        self._model = model
        self._wanted_session = session
        self._phase = CurrentPhase()
        self._announcer = Announcer(self.hooks)
        self._children = Children(self.depth, self.settings.depth, partial(_ChildAgent, self))
        store = MemoryStore() if self.inherited else host.store
        self.sessions = Sessions(store, host.home, redact=host.redactor.text)
        maker = SessionPartsMaker(
            agent=self,
            host=host,
            settings=self.settings,
            store=store,
            hooks=self.hooks,
            announcer=self._announcer,
            phase=self._phase,
            queues=self.queues,
            approver=approver,
            limit=budget if budget is not None else Budget(**self.settings.budget.model_dump()),
            wanted=tools if tools is not None else self.settings.tools,
            folder=self.folder,
            channel=channel,
            inherited=self.inherited,
        )
        self._switcher = SessionSwitcher(
            self.sessions, maker, self.hooks, self._announcer, folder=self.folder, channel=channel
        )

    async def __aenter__(self) -> Self:
        await self._switcher.open(self._wanted_session)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._switcher.close()

    # What it is

    @property
    def _parts(self) -> SessionParts:
        return self._switcher.parts

    @property
    def session(self) -> Session:
        """The session."""
        return self._parts.session

    @property
    def model(self) -> str:
        """``provider:model``.

        Raises:
            ModelMissing: nobody has named one.
        """
        found = self.run.model if self.run is not None else self._usual_model()
        if found is None:
            raise ModelMissing
        return found

    def _usual_model(self) -> str | None:
        """The model that a run begins with."""
        return self._model or self.session.context().model or self.settings.model

    @property
    def tools(self) -> ToolView:
        """The tools that it may call."""
        return self._parts.tools

    async def skills(self) -> tuple[Mapping[str, Any], ...]:
        """The skills that its model is told about: those with a tool that it is told about, or without any."""
        return await self._parts.skills.all()

    @property
    def depth(self) -> int:
        """How many agents stand above it."""
        return self.inherited.depth if self.inherited else 0

    @property
    def phase(self) -> AgentPhase:
        """What it does."""
        return self._phase.value

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return self._phase.is_idle

    @property
    def has_pending_messages(self) -> bool:
        """Whether something is queued."""
        return bool(self.queues)

    @property
    def run(self) -> Run | None:
        """The run that is under way."""
        return self._parts.runner.current

    @property
    def usage(self) -> Usage:
        """What the session has used, children and side calls of plugins included."""
        return self._parts.spending.usage

    @property
    def allowance(self) -> Allowance:
        """What is left of the budget."""
        return self._parts.spending.allowance

    async def charge_side_call(self, usage: Usage, plugin: str) -> None:
        """Note what a plugin's model call beside the conversation used."""
        await self._parts.spending.charge_side_call(usage, plugin)

    @property
    def context_tokens(self) -> int:
        """About how many tokens the conversation has."""
        return self._parts.compactor.tokens(self._parts.system_prompt)

    @property
    def context_window(self) -> int | None:
        """How many tokens the model takes; ``None`` while nobody has asked."""
        try:
            return self._parts.compactor.asked_window(self.model)
        except ModelMissing:
            return None

    # Runs

    async def invoke(
        self, text: str, *, attachments: Iterable[ImagePart] = (), source: str = "interactive"
    ) -> RunResult:
        """Begin a run with an input, and see it through; then the inputs that were queued meanwhile, each a run.

        Args:
            text: what the user says.
            attachments: images that go with it.
            source: ``interactive``, ``api``, ``plugin``, ``schedule`` or ``agent``.

        Returns:
            What the last run came to. A failed or parked one is returned too: it can be resumed.

        Raises:
            AgentBusy: something else is under way.
            InputEmpty: there is neither text nor an attachment.
            ModelMissing: no model is configured.
            StoreError: the input could not be stored.
        """
        queued = Queued(text, attachments=tuple(attachments))
        if not text.strip() and not queued.attachments:
            raise InputEmpty
        with self._claim("begin a run"):
            result = await self._follow_up(await self._parts.runner.begin(queued, source, self.model))
        await self._settle()
        return result

    async def resume(self) -> RunResult | None:
        """Go on with the session's last run if it has not completed, from the last step that is stored.

        What is recorded of it is not done again. Inputs that were queued meanwhile are runs after it, as in ``invoke``.

        Returns:
            What the last run came to; ``None`` if there is nothing to go on with.

        Raises:
            AgentBusy: something else is under way.
            ModelMissing: no model is configured.
        """
        with self._claim("resume a run"):
            entry = self.session.unfinished_run()
            if entry is None:
                return None
            result = await self._follow_up(await self._parts.runner.resume(entry, self.model))
        await self._settle()
        return result

    async def _follow_up(self, result: RunResult) -> RunResult:
        """Run what was queued meanwhile, each input a run, as long as they complete."""
        while result.status == "completed" and (queued := self.queues.next_input()) is not None:
            source = "interactive" if queued.source == "user" else "plugin"
            result = await self._parts.runner.begin(queued, source, self.model)
        return result

    async def _settle(self) -> None:
        if not self.queues and self.is_idle:
            await self._announcer.tell(Settled(self.session.id))

    def steer(self, text: str, *, attachments: Iterable[ImagePart] = (), source: str = "user") -> None:
        """Queue a message that the model sees before its next step; without a run, it begins the next one."""
        self.queues.steering.append(Queued(text, source, tuple(attachments)))

    def follow_up(self, text: str, *, attachments: Iterable[ImagePart] = (), source: str = "user") -> None:
        """Queue an input that begins a run of its own once this one is done."""
        self.queues.following.append(Queued(text, source, tuple(attachments)))

    def abort(self, reason: str = "") -> None:
        """End the run at its next wait. What was said and done until then is kept; calls that were cut off say so."""
        self._parts.runner.abort(reason)

    def shutdown(self) -> None:
        """Ask whoever runs the agent to end it, once it is idle: sets ``wants_shutdown``."""
        self.wants_shutdown = True

    async def wait_for_idle(self) -> None:
        """Wait until nothing is under way. Not from within a run, which would wait for itself."""
        await self._phase.wait_for_idle()

    async def compact(self, instructions: str = "") -> bool:
        """Make the conversation shorter now.

        Args:
            instructions: what the summary should keep.

        Returns:
            Whether there was something to shorten, and no plugin was against it.

        Raises:
            AgentBusy: something else is under way.
        """
        with self._claim("compact", AgentPhase.COMPACTION):
            return await self._parts.compactor.compact(self.model, instructions)

    def ask_for_compaction(self, instructions: str = "") -> None:
        """Ask for a compaction at the next chance: between two turns, or after the run."""
        self._parts.compactor.ask(instructions)

    async def spawn_child(
        self, prompt: str, *, tools: Sequence[str] | None = None, share: float = 0.5, call: str | None = None
    ) -> RunResult:
        """Let a child agent do a task, and wait for it. See ``AgentContext.spawn_child``.

        Args:
            prompt, tools, share: as there.
            call: the tool call that it is done for, ``session:run:step``; the child's effects name it.
        """
        return await self._children.run(prompt, self._parts, tools=tools, share=share, call=call)

    # Sessions, models, and what they are made of

    async def select_model(self, model: str, *, source: str = "set") -> None:
        """Use another model from now on.

        Raises:
            AgentBusy: a run is under way.
        """
        with self._claim("change the model"):
            previous = self._usual_model()
            await self.session.append(ModelEntry(model=model))
            self._model = model
            await self._announcer.tell(ModelSelect(model, previous=previous, source=source))

    async def new_session(self) -> str:
        """Leave the session for a new one; returns its id."""
        with self._claim("switch sessions"):
            return await self._switcher.new()

    async def switch_session(self, session: str) -> None:
        """Leave the session for another one.

        Raises:
            AgentBusy: a run is under way.
            StructureRefused: a plugin is against it.
        """
        with self._claim("switch sessions"):
            await self._switcher.switch(session)

    async def fork(self, entry: str | None = None, *, position: Literal["at", "before"] = "at") -> str:
        """Leave the session for a copy of its path up to an entry; returns its id.

        Args:
            entry: the entry; ``None``: the last one.
            position: ``at`` the entry, or ``before`` it.
        """
        with self._claim("fork"):
            return await self._switcher.fork(entry, position=position)

    async def rewind(self, entry: str | None, *, summary: str = "") -> None:
        """Take the conversation back to an entry: what comes next follows it. Nothing is deleted.

        Args:
            entry: the entry; ``None``: the beginning.
            summary: what was done since, for the model to know; empty for nothing.

        Raises:
            AgentBusy: a run is under way.
            EntryNotFound: the session has no such entry.
        """
        with self._claim("rewind"):
            await self.session.rewind(entry, summary=summary)

    async def reload(self) -> None:
        """Read skills, prompts and tools anew. The session stays, and stays open."""
        with self._claim("reload"):
            self.host.tools.forget_skills()
            await self._switcher.reload()

    def _claim(self, wish: str, phase: AgentPhase = AgentPhase.TURN) -> AbstractContextManager[None]:
        """Nothing else may begin until the block ends."""
        _ = self._parts
        return self._phase.claim(wish, phase)


class _ChildAgent(Agent):
    """An agent that works for another one, in a session that ends with it."""

    def __init__(self, parent: Agent, inherited: Inherited, tools: Sequence[str]) -> None:
        self.inherited = inherited
        super().__init__(
            parent.host,
            model=parent.model,
            tools=tools,
            channel=parent.channel,
            approver=parent.approver,
            guards=parent.guards,
            folder=parent.folder,
        )
