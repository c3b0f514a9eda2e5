"""The agent: a session, a model, tools and guards, and one run at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import anyio
from sideband.hooks import (
    HookRegistry,
    ModelSelect,
    SessionBeforeFork,
    SessionBeforeSwitch,
    SessionShutdown,
    SessionStart,
    Settled,
    Verdict,
)
from sideband.hooks import (
    Phase as HookPhase,
)
from sideband.host import HostPluginContext
from sideband.messages import ImagePart, Usage
from sideband.plugins import PluginContext
from sideband.settings import AgentSettings
from sideband.tools import ToolView

from ._agent_hooks import Listener, listening
from ._announcer import Announcer
from ._budget import Allowance, Budget
from ._contexts import AgentPluginContext
from ._errors import AgentBusy, AgentClosed, InputEmpty, ModelMissing, StructureRefused
from ._queues import Queued, Queues
from ._run import Phase, RunResult
from ._session_parts import Lineage, Wiring, wire
from ._tools._long_results import Outputs
from ._tools._tool_calls import Approver
from ._tools._unanswered_calls import settle_calls
from .sessions import CustomEntry, ModelEntry, Session, Sessions

if TYPE_CHECKING:
    from sideband import Host

__all__ = ["MOST_CHILDREN", "Agent"]

MOST_CHILDREN = 16
"""How many children of one agent work at the same time. Others wait for their turn."""


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

    def __init__(
        self,
        host: Host,
        *,
        model: str | None = None,
        session: str | None = None,
        tools: Sequence[str] | None = None,
        channel: str = "cli",
        budget: Budget | None = None,
        approver: Approver | None = None,
        on_event: Listener | None = None,
        guards: Mapping[str, type] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.host = host
        self.settings: AgentSettings = host.settings.settings.agent
        self.channel = channel
        self.approver = approver
        self.lineage: Lineage | None = None
        self.queues = Queues()
        self.guards = dict(guards or {})
        self.folder = (folder or Path.cwd()).absolute()
        self.store = host.store
        self.places_for_children = anyio.Semaphore(MOST_CHILDREN)
        self.sessions = Sessions(self.store, host.home, redact=host.redactor.text)
        self._model = model
        self._wanted_session = session
        self._wanted_tools = tools if tools is not None else self.settings.tools
        self._limit = budget if budget is not None else Budget(**self.settings.budget.model_dump())
        self._listener = on_event
        self._phase = Phase.IDLE
        self._idle = anyio.Event()
        self._idle.set()
        self._wiring: Wiring | None = None
        self.wants_shutdown = False

    async def __aenter__(self) -> Self:
        self.hooks = self._own_hooks()
        self.announcer = Announcer(self.hooks)
        reason = "startup" if self._wanted_session is None else "resume"
        self._wiring = await self._wired(await self._opened(self._wanted_session))
        await self.announcer.tell(SessionStart(self.session.id, reason))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._wiring is not None:
            session = self.session
            with anyio.CancelScope(shield=True):
                await self.announcer.tell(SessionShutdown(session.id, "quit"))
                self._wiring = None
                await session.aclose()

    # What it is

    @property
    def _work(self) -> Wiring:
        if self._wiring is None:
            raise AgentClosed
        return self._wiring

    @property
    def session(self) -> Session:
        """The session."""
        return self._work.session

    @property
    def model(self) -> str:
        """``provider:model``.

        Raises:
            ModelMissing: nobody has named one.
        """
        running = self._work.runs.current
        if running is not None:
            return running.model
        found = self._model or self.session.context().model or self.settings.model
        if found is None:
            raise ModelMissing
        return found

    @property
    def tools(self) -> ToolView:
        """The tools that it may call."""
        return self._work.engine.tools.view

    @property
    def offered(self) -> ToolView:
        """The tools that its model is told about: for a child, those of its parent."""
        return self._work.engine.tools.offered

    @property
    def depth(self) -> int:
        """How many agents stand above it."""
        return self.lineage.depth if self.lineage else 0

    @property
    def parent_call(self) -> str | None:
        """The tool call of its parent that it works for, ``session:run:step``, if it is a child."""
        return self.lineage.call if self.lineage else None

    @property
    def phase(self) -> Phase:
        """What it does."""
        return self._phase

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return self._phase is Phase.IDLE

    @property
    def has_pending_messages(self) -> bool:
        """Whether something is queued."""
        return bool(self.queues)

    @property
    def run_id(self) -> str:
        """The id of the run; empty between runs."""
        running = self._work.runs.current
        return running.id if running is not None else ""

    @property
    def system_prompt(self) -> str:
        """The system prompt of the run; empty between runs."""
        running = self._work.runs.current
        return running.system_prompt if running is not None else ""

    @property
    def usage(self) -> Usage:
        """What the session has used, children and side calls of plugins included."""
        return self._work.usage

    @property
    def allowance(self) -> Allowance:
        """What is left of the budget."""
        return self._work.allowance

    @property
    def outputs(self) -> Outputs:
        """The long results of the session."""
        return self._work.outputs

    @property
    def context_tokens(self) -> int:
        """About how many tokens the conversation has."""
        return self._work.engine.compactor.tokens()

    @property
    def context_window(self) -> int | None:
        """How many tokens the model takes; ``None`` while nobody has asked."""
        return self._work.engine.compactor.window

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
        with self._busy("begin a run", Phase.TURN):
            _ = self.model
            result = await self._follow_up(await self._work.runs.begin(queued, source))
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
        with self._busy("resume a run", Phase.TURN):
            entry = self.session.unfinished_run()
            if entry is None:
                return None
            _ = self.model
            result = await self._follow_up(await self._work.runs.resume(entry))
        await self._settle()
        return result

    def steer(self, text: str, *, attachments: Iterable[ImagePart] = (), source: str = "user") -> None:
        """Queue a message that the model sees before its next step; without a run, it begins the next one."""
        self.queues.steering.append(Queued(text, source, tuple(attachments)))

    def follow_up(self, text: str, *, attachments: Iterable[ImagePart] = (), source: str = "user") -> None:
        """Queue an input that begins a run of its own once this one is done."""
        self.queues.following.append(Queued(text, source, tuple(attachments)))

    def abort(self, reason: str = "") -> None:
        """End the run at its next wait. What was said and done until then is kept; calls that were cut off say so."""
        self._work.runs.abort(reason)

    def shutdown(self) -> None:
        """Ask whoever runs the agent to end it, once it is idle: sets ``wants_shutdown``."""
        self.wants_shutdown = True

    async def wait_for_idle(self) -> None:
        """Wait until nothing is under way. Not from within a run, which would wait for itself."""
        await self._idle.wait()

    async def compact(self, instructions: str = "") -> bool:
        """Make the conversation shorter now.

        Args:
            instructions: what the summary should keep.

        Returns:
            Whether there was something to shorten, and no plugin was against it.

        Raises:
            AgentBusy: something else is under way.
        """
        with self._busy("compact", Phase.COMPACTION):
            return await self._work.engine.compactor.compact(instructions)

    def ask_for_compaction(self, instructions: str = "") -> None:
        """Ask for a compaction at the next chance: between two turns, or after the run."""
        self._work.engine.compactor.ask(instructions)

    async def spawn_child(
        self, prompt: str, *, tools: Sequence[str] | None = None, share: float = 0.5, call: str | None = None
    ) -> RunResult:
        """Let a child agent do a task, and wait for it. See ``AgentContext.spawn_child``.

        Args:
            prompt, tools, share: as there.
            call: the tool call that it is done for, ``session:run:step``; the child's effects name it.
        """
        from ._children import run_child  # noqa: PLC0415  a child is an agent, so that module imports this one

        return await run_child(self, prompt, tools=tools, share=share, call=call)

    # Sessions, models, and what they are made of

    async def select_model(self, model: str, *, source: str = "set") -> None:
        """Use another model from now on.

        Raises:
            AgentBusy: a run is under way.
        """
        with self._busy("change the model", Phase.TURN):
            previous = self._model or self.session.context().model or self.settings.model
            await self.session.append(ModelEntry(model=model))
            self._model = model
            await self.announcer.tell(ModelSelect(model, previous=previous, source=source))

    async def new_session(self) -> str:
        """Leave the session for a new one; returns its id."""
        return await self._switch(SessionBeforeSwitch("new"), None, "new")

    async def switch_session(self, session: str) -> None:
        """Leave the session for another one.

        Raises:
            AgentBusy: a run is under way.
            StructureRefused: a plugin is against it.
        """
        await self._switch(SessionBeforeSwitch("resume", session), session, "resume")

    async def fork(self, entry: str | None = None, *, position: Literal["at", "before"] = "at") -> str:
        """Leave the session for a copy of its path up to an entry; returns its id.

        Args:
            entry: the entry; ``None``: the last one.
            position: ``at`` the entry, or ``before`` it.
        """
        with self._busy("fork", Phase.TURN):
            place = entry or self.session.leaf or ""
            await self._ask(SessionBeforeFork(self.session.id, place, position), "fork the session")
            copy = await self.sessions.fork(self.session.id, entry, position=position)
            await self._replace_session(copy, "fork", target=copy.id)
            return copy.id

    async def rewind(self, entry: str | None, *, summary: str = "") -> None:
        """Take the conversation back to an entry: what comes next follows it. Nothing is deleted.

        Args:
            entry: the entry; ``None``: the beginning.
            summary: what was done since, for the model to know; empty for nothing.

        Raises:
            AgentBusy: a run is under way.
            EntryNotFound: the session has no such entry.
        """
        with self._busy("rewind", Phase.TURN):
            await self.session.rewind(entry, summary=summary)

    async def reload(self) -> None:
        """Read skills, prompts and tools anew. The session stays, and stays open."""
        with self._busy("reload", Phase.TURN):
            self.host.tools.forget_skills()
            await self._replace_session(self.session, "reload", target=self.session.id)

    async def skills(self) -> tuple[Mapping[str, Any], ...]:
        """The skills that its model is told about: those with a tool that it is told about, or without any."""
        return tuple(
            skill
            for skill in await self.host.tools.skills()
            if not skill["tools"] or any(self.offered.get(name) for name in skill["tools"])
        )

    async def build_system_prompt(self) -> str:
        """The system prompt for the agent's channel: the same bytes until ``reload``."""
        work = self._work
        if self.lineage is not None:
            return self.lineage.system_prompt
        names = tuple(one.model_name for one in self.offered.tools)
        return await work.prompts.get(self.channel, self.session.id, names, await self.skills())

    async def settle_calls(self) -> None:
        """Answer the calls that a run which was given up has left, with what is recorded of them."""
        await settle_calls(self.session, self._work.engine.tools)

    def charge(self, usage: Usage) -> None:
        """Note what a model call of the session used."""
        work = self._work
        work.usage += usage
        work.allowance.charge(usage)

    def charge_time(self) -> None:
        """Note how long the run was at work."""
        self._work.runs.charge_time()

    async def charge_side_call(self, usage: Usage, plugin: str) -> None:
        """Note what a plugin's model call beside the conversation used."""
        self._work.allowance.charge(usage)
        await self.note_usage(usage, plugin)

    async def note_usage(self, usage: Usage, plugin: str) -> None:
        """Store what was used beside the conversation, and is charged already."""
        self._work.usage += usage
        data = usage.model_dump(mode="json", exclude_none=True)
        with anyio.CancelScope(shield=True):  # it was paid for, also by who is cancelled: a budget must know of it
            await self.session.append(CustomEntry(plugin=plugin, kind="usage", data=data))

    @contextmanager
    def _busy(self, wish: str, phase: Phase) -> Iterator[None]:
        """Nothing else may begin until the block ends. There is no wait between the look and the claim."""
        _ = self._work
        if self._phase is not Phase.IDLE:
            raise AgentBusy(wish, self._phase)
        self._phase = phase
        self._idle = anyio.Event()
        try:
            yield
        finally:
            self._phase = Phase.IDLE
            self._idle.set()

    @contextmanager
    def compacting(self) -> Iterator[None]:
        """The phase while a run that goes on is compacted in between."""
        before, self._phase = self._phase, Phase.COMPACTION
        try:
            yield
        finally:
            self._phase = before

    async def _follow_up(self, result: RunResult) -> RunResult:
        """Run what was queued meanwhile, each input a run, as long as they complete."""
        while result.status == "completed" and (queued := self.queues.next_input()) is not None:
            result = await self._work.runs.begin(queued, "interactive" if queued.source == "user" else "plugin")
        return result

    async def _settle(self) -> None:
        if not self.queues and self.is_idle:
            await self.announcer.tell(Settled(self.session.id))

    def _own_hooks(self) -> HookRegistry:
        def context(theirs: PluginContext | None) -> PluginContext | None:
            return AgentPluginContext(theirs, self) if isinstance(theirs, HostPluginContext) else theirs

        hooks = self.host.hooks.derive(context)
        for name, guard in self.guards.items():
            own = AgentPluginContext(self.host.context_for(name), self)
            hooks.register(name, guard(), phase=HookPhase.GUARD, context=own, make=guard)
        if self._listener is not None:
            hooks.register("on_event", listening(self._listener), phase=HookPhase.OBSERVER)
        return hooks

    async def _switch(self, event: SessionBeforeSwitch, session: str | None, reason: str) -> str:
        with self._busy("switch sessions", Phase.TURN):
            await self._ask(event, "leave the session")
            await self._replace_session(await self._opened(session), reason, target=session)
            return self.session.id

    async def _ask(self, event: SessionBeforeSwitch | SessionBeforeFork, wish: str) -> None:
        decision = await self.hooks.decide(event)
        if decision.verdict is Verdict.DENY:
            raise StructureRefused(wish, decision.reason, decision.plugin)

    async def _replace_session(self, session: Session, reason: str, *, target: str | None) -> None:
        """Go over to an open session, or begin anew with this one. If that fails, nothing has changed."""
        previous = self.session
        wiring = await self._wired(session)
        with anyio.CancelScope(shield=True):
            await self.announcer.tell(SessionShutdown(previous.id, reason, target=target))
            self._wiring = wiring
            if session is not previous:
                await previous.aclose()
            await self.announcer.tell(SessionStart(session.id, reason, previous=previous.id))

    async def _opened(self, session: str | None) -> Session:
        if session is None:
            return await self.sessions.create(folder=self.folder, channel=self.channel)
        return await self.sessions.open(session)

    async def _wired(self, session: Session) -> Wiring:
        """What the agent needs for a session. If it can't be had, the session is given back."""
        try:
            return await wire(self, session, self._limit, self._wanted_tools)
        except BaseException:
            if self._wiring is None or session is not self._wiring.session:
                with anyio.CancelScope(shield=True):
                    await session.aclose()
            raise
