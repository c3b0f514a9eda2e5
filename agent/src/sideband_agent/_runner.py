"""Execute one run from its input to its end: begin or resume it, and close it however it ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from secrets import token_hex

import anyio
from attrs import define, field
from sideband.broker import Redaction
from sideband.contexts import Lease
from sideband.errors import SidebandError
from sideband.exit_codes import ExitCode
from sideband.hooks import (
    AgentEnd,
    AgentError,
    AgentStart,
    BeforeAgentStart,
    Handled,
    HookRegistry,
    Input,
    Routes,
    SavePoint,
)
from sideband.messages import AssistantMessage, Message, ToolResultMessage, UserMessage, to_data

from ._announcer import Announcer
from ._compaction import Compactor
from ._direct_calls import DirectCalls
from ._errors import ApprovalAwaited, RunParked, ToolDenied
from ._history import VisibleHistory
from ._queues import Queued, user_message
from ._router import Router, open_route
from ._run import Run, RunResult, RunStatus, error_data, last_said, stored_messages, usage_of
from ._session_tools import SessionTools
from ._spending import Spending
from ._system_prompt import SystemPrompt
from ._tools import ToolCalls, settle_calls
from ._turn_loop import TurnLoop
from .sessions import Entry, MessageEntry, RunEntry, Session

_log = logging.getLogger("sideband.agent")
_REASONS = {"completed": "completed", "aborted": "aborted", "failed": "error", "parked": "parked"}


@define(eq=False)
class Runner:
    """The runner of one session's runs, one at a time.

    Args:
        session: stores the conversation.
        history: the part of the conversation that the model sees.
        router: makes the router, which most runs do not need.
        prompt: the system prompt.
        turns: runs the turns.
        tools: answers tool calls.
        compactor: compacts the conversation after a run.
        spending: records usage.
        hooks: the agent's hooks.
        announcer: emits events.
        redactor: removes secrets from inputs and errors.
        sync: returns when everything recorded so far is on disk.
        outer: for a child, the run of its parent.

    Attributes:
        current: the run in progress, or ``None``.
    """

    session: Session = field(repr=False)
    history: VisibleHistory = field(repr=False)
    router: Callable[[Session, SessionTools], Router] = field(repr=False)
    prompt: SystemPrompt = field(repr=False)
    turns: TurnLoop = field(repr=False)
    tools: ToolCalls = field(repr=False)
    compactor: Compactor = field(repr=False)
    spending: Spending = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    announcer: Announcer = field(repr=False)
    redactor: Redaction = field(repr=False)
    sync: Callable[[], Awaitable[None]] = field(repr=False)
    outer: Lease | None = field(default=None, repr=False)
    current: Run | None = field(default=None, init=False)
    _scope: anyio.CancelScope | None = field(default=None, init=False)
    _aborted: str = field(default="", init=False)

    def abort(self, reason: str) -> None:
        """Cancel the run."""
        if self._scope is not None:
            self._aborted = reason or "aborted"
            if self.current is not None:
                self.current.aborted = True
            self._scope.cancel()

    async def begin(self, queued: Queued, source: str, model: str, thinking: str | None) -> RunResult:
        """Begin a run with an input and run it to its end.

        Args:
            queued: the input.
            source: where it comes from.
            model: the model to call.
            thinking: its level of thinking.
        """
        return await self._execute(Run(token_hex(8), source, model, thinking), queued)

    async def resume(self, entry: RunEntry, model: str, thinking: str | None) -> RunResult:
        """Continue an unfinished run from the last stored step."""
        source = entry.source or "interactive"
        if self._has_other_branch(entry.run):
            # its stored entries belong to an abandoned branch, so continue with a new run
            return await self._execute(Run(token_hex(8), source, model, thinking), None)
        run = Run(entry.run, source, model, thinking)
        run.messages = list(stored_messages(self.session, run.id))
        run.step = sum(isinstance(message, AssistantMessage) for message in run.messages)
        run.usage = usage_of(run.messages)
        await self.tools.questions.approvals.resume(run.id)
        return await self._execute(run, None)

    def _has_other_branch(self, run: str) -> bool:
        """Return whether a run has entries on a branch that was left by a rewind."""
        path = {one.id for one in self.session.path()}
        entries = self.session.tree.entries
        return any(
            isinstance(one, (MessageEntry, RunEntry)) and one.run == run and one.id not in path for one in entries
        )

    @asynccontextmanager
    async def open_calls(self, source: str, model: str) -> AsyncIterator[DirectCalls]:
        """Begin a run whose tool calls a program makes. It ends with the block, which an abort cancels.

        Args:
            source: where the calls come from.
            model: the model that children of its tools call; may be empty.
        """
        run = Run(token_hex(8), source, model)
        run.outer = self.outer
        with self.hooks.pinned():
            self.spending.start_clock()
            self.current = run
            try:
                async with run.watched(), anyio.create_task_group() as tasks:
                    self._scope = tasks.cancel_scope
                    await self.announcer.emit(AgentStart, run.id, source)
                    yield DirectCalls(run, self.tools, self.session, self.announcer, tasks)
                    tasks.cancel_scope.cancel()
            except BaseExceptionGroup as group:  # its only member comes from the block
                raise group.exceptions[0] from None
            finally:
                self._scope = None
                self.spending.charge_time()
                with anyio.CancelScope(shield=True):
                    await self.announcer.emit_made(
                        AgentEnd, lambda: AgentEnd(run.id, "completed", [to_data(message) for message in run.messages])
                    )
                    await self.sync()
                self.current = None

    async def _execute(self, run: Run, queued: Queued | None) -> RunResult:
        with self.hooks.pinned():
            return await self._run(run, queued)

    async def _run(self, run: Run, queued: Queued | None) -> RunResult:
        status: RunStatus = "completed"
        error: Exception | None = None
        handled: str | None = None
        self.spending.start_clock()
        self.current = run
        run.outer = self.outer
        try:
            async with run.watched():
                with anyio.CancelScope() as scope:
                    self._scope = scope
                    try:
                        handled = await self._go(run, queued)
                    except RunParked as raised:
                        status, error = "parked", raised
                    except Exception as raised:  # noqa: BLE001  close the run first; defects are raised again below
                        status, error = "failed", raised
            self._scope = None
            if scope.cancelled_caught or (scope.cancel_called and status == "failed"):
                # errors caused by the cancellation are not failures of the run
                status, error = "aborted", None
            self.spending.charge_time()
            with anyio.CancelScope(shield=True):
                result = await self._close(run, status, error)
            if status == "completed" and handled is None:
                await self._compact_at_end(run)
        finally:
            # reached on outside cancellation too: state of this run must not leak into the next one
            self._scope = None
            self.spending.charge_time()
            self.tools.settle()
            self.current = None
        if error is not None and not isinstance(error, SidebandError):
            raise error
        return result if handled is None else RunResult("completed", handled, session=self.session.id)

    async def _go(self, run: Run, queued: Queued | None) -> str | None:
        """Process the input, if any, and run turns. Return the reply if a plugin handled the input."""
        await self.announcer.emit(AgentStart, run.id, run.source)
        if queued is not None:
            given = await self.hooks.update(Input(queued.text, run.source))
            if isinstance(given, Handled):
                return given.reply
            text = given.text if given.text.strip() else queued.text  # providers reject empty messages
            text = self.redactor.text(text)
            run.input = user_message(text, queued.attachments, source=_speaker(queued, run.source))
        else:
            run.is_stored = True
        if not run.messages:  # a new run does not answer the tool calls of an earlier one
            if (abandoned := self.session.unfinished_run()) is not None:
                await self.tools.questions.approvals.withdraw(run=abandoned.run)
            await settle_calls(self.session, self.tools, self.sync)
            await self._leave_route("its run was not resumed", None)
        # a resumed run may have a route of a plugin that is gone
        may_be_routed = run.input is None or self.hooks.has(Routes.hook)
        if not (may_be_routed and await self.router(self.session, self.tools.tools).answer(run, self._begin)):
            await self._prepare(run)
            await self.turns.go(run)
        return None

    async def build_prompt(self) -> None:
        """Build the system prompt of the current run, for a child that a route or an early hook spawns."""
        if self.current is not None and not self.current.system_prompt:
            self.current.system_prompt = await self.prompt.get(partial(self._first_text, self.current))

    def _first_text(self, run: Run) -> str:
        """Return the text of the first input of the session, so that a resumed session has the same prompt."""
        stored = (one.message for one in self.session.path() if isinstance(one, MessageEntry))
        first = next((one for one in stored if isinstance(one, UserMessage)), run.input)
        return first.text if first is not None else ""

    async def _leave_route(self, reason: str, run: Run | None) -> None:
        """End the route that a run has left open, if any.

        Args:
            reason: why it does not run again.
            run: the run, unless a later one has begun.
        """
        entry = open_route(self.session)
        if entry is not None and (run is None or run.id == entry.run):
            await self.router(self.session, self.tools.tools).leave(entry, reason, run)

    async def _prepare(self, run: Run) -> None:
        """Build the system prompt and the visible history, and store the input."""
        coming = () if run.input is None else (run.input,)
        routed = run.has_begun and run.messages  # a note of a route may follow the input
        prompt = (
            run.input.text if run.input else run.messages[0].text if routed else _last_text(self.session.messages())
        )
        run.system_prompt = await self.prompt.get(partial(self._first_text, run))
        changed = await self.hooks.update(BeforeAgentStart(prompt, run.system_prompt))
        run.system_prompt = changed.system_prompt
        await self.history.begin(*coming)
        await self._begin(run)

    async def _begin(self, run: Run, *entries: Entry) -> None:
        """Store the beginning of a run and its input, unless they are stored, and further entries."""
        # shielded: a cancelled append might have stored the input or not, and it must be neither lost nor duplicated
        with anyio.CancelScope(shield=True):
            await self.session.append(*self._beginning(run), *entries)
        await self._begun(run)

    def _beginning(self, run: Run) -> tuple[Entry, ...]:
        """Return the entries to store when a run begins or resumes."""
        if run.has_begun:
            return ()
        started = RunEntry(run=run.id, status="started", source=run.source)
        return (started,) if run.input is None else (started, MessageEntry(message=run.input, run=run.id, step=""))

    async def _begun(self, run: Run) -> None:
        """Mark the input as stored and emit it."""
        message, run.input, run.is_stored, run.has_begun = run.input, None, True, True
        if message is not None:
            run.messages.append(message)
            await self.turns.queue_changes.emit()  # not before it is stored: an abort of this must not lose it
            await self.announcer.emit_message(message)

    async def _close(self, run: Run, status: RunStatus, error: Exception | None) -> RunResult:
        data = (
            {"code": "agent.aborted", "message": self._aborted, "hint": ""}
            if status == "aborted"
            else error_data(error, self.redactor)
        )
        until = error.until if isinstance(error, RunParked) else None
        ended = RunEntry(run=run.id, status=status, source=run.source, error=data, resume_at=until)
        if status == "aborted":
            await self.tools.questions.approvals.withdraw(run=run.id)
            await self._leave_route("the run was aborted", run)
        # answer interrupted calls: every tool call in the conversation needs a result
        interrupted = self.tools.interrupted() if status == "aborted" else ()
        answers = [MessageEntry(message=one, run=run.id) for one in interrupted]
        if run.input is not None:
            # aborted before the input was stored: keep the user's input anyway
            await self.session.append(*self._beginning(run), ended)
            await self._begun(run)
        elif run.is_stored:
            await self.session.append(*answers, ended)
        run.messages.extend(interrupted)
        if status in ("failed", "parked") and data is not None:
            await self.announcer.emit(AgentError, run.id, data)
        await self.announcer.emit_made(
            AgentEnd, lambda: AgentEnd(run.id, _REASONS[status], [to_data(message) for message in run.messages])
        )
        await self.sync()
        if run.is_stored:
            await self.announcer.emit(SavePoint, self.session.id, self.session.leaf or "")
        return RunResult(
            status=status,
            text=last_said(run.messages),
            messages=tuple(run.messages),
            usage=run.usage,
            error=data,
            run=run.id,
            session=self.session.id,
            resume_at=until,
            requests=error.requests if isinstance(error, ApprovalAwaited) else (),
            exit_code=_exit_code(status, error, run.messages),
        )

    async def _compact_at_end(self, run: Run) -> None:
        """Compact the conversation if it is due. Errors are logged: the run has already ended."""
        with anyio.CancelScope() as self._scope:
            try:
                await self.compactor.compact_if_due(run, at_end=True)
            except SidebandError as error:
                _log.warning("compaction after the run failed: %s", error.message)


def _speaker(queued: Queued, source: str) -> str:
    if queued.source != "user":
        return queued.source
    return "agent" if source == "agent" else "user"


def _exit_code(status: RunStatus, error: Exception | None, messages: Sequence[Message]) -> ExitCode:
    """Return the exit code. A run whose tool calls were all denied has probably not done its task."""
    if status == "completed":
        answers = [one for one in messages if isinstance(one, ToolResultMessage)]
        denied = [one.metadata.get("denied") or one.metadata.get("code") == ToolDenied.code for one in answers]
        return ExitCode.DENIED if denied and all(denied) else ExitCode.SUCCESS
    return error.exit_code if isinstance(error, SidebandError) else ExitCode.FAILURE


def _last_text(messages: tuple[Message, ...]) -> str:
    return next((one.text for one in reversed(messages) if isinstance(one, UserMessage)), "")
