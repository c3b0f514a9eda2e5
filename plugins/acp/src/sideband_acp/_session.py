"""One session of a client: an agent that works in the client's folder."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from acp import RequestError
from acp.schema import (
    AcceptElicitationResponse,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    Cost,
    ElicitationFormSessionMode,
    ElicitationSchema,
    PromptResponse,
    SessionInfoUpdate,
    UsageUpdate,
)
from anyio.abc import TaskGroup, TaskStatus
from attrs import define, field
from pydantic import ValidationError
from sideband.approvals import Approval, ApprovalRequest
from sideband.asking import UserAnswer, UserQuestion
from sideband.errors import SidebandError
from sideband.hooks import AgentStart, ApprovalModeSelect, ObserveEvent
from sideband.ops import Origin
from sideband.rendering import render
from sideband_agent import Agent, RunResult
from sideband_agent.sessions import MessageEntry
from sideband_serving import Unanswered, answers_of, questions_form

from ._activity import AcpActivity
from ._changes import Changes
from ._choices import SessionChoices
from ._client import AcpClient
from ._config_options import MODE, ConfigOptions, options_of, select_option
from ._errors import AcpBusy, AcpFailed, AcpOptionUnknown
from ._given_servers import GivenServer
from ._history import history
from ._input import PromptInput
from ._instructions import ask_about_instructions
from ._limits import AcpLimits
from ._modes import modes_of
from ._own_questions import OwnQuestions
from ._permissions import approval_of, permission_of
from ._plan import TASKS, plan_of
from ._prompt_run import PromptRun, stop_reason
from ._slash_commands import SlashCommands
from ._starting_servers import start_servers
from ._updates import Update, Updates

if TYPE_CHECKING:
    from sideband import Host

_log = logging.getLogger("sideband.acp")


@define(eq=False)
class AcpSession:
    """One session of a client.

    Args:
        host: the host.
        client: the client.
        choices: what the command line says.
        limits: the limits.
        folder: the working directory.
        servers: the MCP servers that the client passes.
        wanted: the id of the session to continue; a new one if ``None``.

    Attributes:
        ended: set once it has ended.
    """

    host: Host = field(repr=False)
    client: AcpClient
    choices: SessionChoices
    limits: AcpLimits
    folder: Path
    servers: Sequence[GivenServer] = field(default=(), repr=False)
    wanted: str | None = None
    ended: anyio.Event = field(factory=anyio.Event, init=False, repr=False)
    _agent: Agent | None = field(default=None, init=False, repr=False)
    _tasks: TaskGroup | None = field(default=None, init=False, repr=False)
    _closing: anyio.Event = field(factory=anyio.Event, init=False, repr=False)
    _updates: Updates = field(init=False, repr=False)
    _activity: AcpActivity = field(init=False, repr=False)
    _changes: Changes = field(init=False, repr=False)
    _commands: SlashCommands = field(init=False, repr=False)
    _known: list[Update] = field(factory=list, init=False, repr=False)
    _prompt: PromptRun | None = field(default=None, init=False, repr=False)
    _prepared: bool = field(default=False, init=False, repr=False)

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Keep the session open until it is closed.

        Raises:
            SidebandError: if it cannot be opened.
        """
        self._changes = Changes(self.folder, self.host.redactor.text)
        self._updates = Updates(self._send, self.limits.waiting, self._on_excess)
        self._activity = AcpActivity(self._updates.put, self._changes, self._report_tasks, self._report_usage)
        agent = Agent(
            self.host,
            session=self.wanted,
            tools=self.choices.tools,
            channel="acp",
            budget=self.choices.budget,
            approver=self._approve,
            asker=self._ask if self.client.has_forms else None,
            approval_mode="assist",
            on_event=self._take,
            folder=self.folder,
        )
        try:
            async with agent:
                await self._choose(agent)
                self._agent, self._commands = agent, SlashCommands(agent)
                async with anyio.create_task_group() as self._tasks:
                    self._tasks.start_soon(self._updates.send)
                    task_status.started()
                    await self._closing.wait()
                    await self._stop(agent)
                    self._tasks.cancel_scope.cancel()
        except Exception:
            if self._agent is None:
                raise
            _log.exception("the session of an editor failed")  # the others go on
        finally:
            self._closing.set()
            self.ended.set()

    async def _choose(self, agent: Agent) -> None:
        choices = self.choices
        if choices.model is not None and agent.session.context().model != choices.model:
            await agent.select_model(choices.model)
        if choices.mode is not None and self.wanted is None:
            await self._use_mode(agent, choices.mode)
        _ = agent.model  # the error says how to configure one

    async def _stop(self, agent: Agent) -> None:
        """End the run in progress: what is complete of it is kept."""
        with anyio.move_on_after(self.limits.seconds, shield=True):
            self.cancel("the client has closed the session")
            await agent.wait_for_idle()
            if self._prompt is not None:
                await self._prompt.done.wait()

    def close(self) -> None:
        """End the session, and cancel its run."""
        self._closing.set()

    @property
    def is_open(self) -> bool:
        """Whether it takes prompts."""
        return not self._closing.is_set()

    @property
    def agent(self) -> Agent:
        """Its agent."""
        assert self._agent is not None  # noqa: S101  set before the session is returned
        return self._agent

    @property
    def id(self) -> str:
        """Its id."""
        return self.agent.session.id

    @property
    def is_working(self) -> bool:
        """Whether a prompt is in progress."""
        return self._prompt is not None

    async def prompt(self, given: PromptInput) -> PromptResponse:
        """Answer a prompt, and return why the answer has ended.

        Raises:
            AcpBusy: if another prompt is in progress.
            SidebandError: if the run failed.
        """
        if self._prompt is not None:
            raise AcpBusy
        prompt = self._prompt = PromptRun()
        assert self._tasks is not None  # noqa: S101  set before the session is returned
        self._tasks.start_soon(self._answer, prompt, given)
        await prompt.done.wait()
        await self._updates.sent()
        if prompt.failure is not None:
            raise prompt.failure
        return PromptResponse(stop_reason=stop_reason(prompt))

    async def _answer(self, prompt: PromptRun, given: PromptInput) -> None:
        try:
            reply = await self._commands.answer(given.text)
            if reply is not None:
                self._activity.say(render(reply, prose=True))
            else:
                await self._prepare(prompt)
            if reply is None and not prompt.cancelled:
                text = self._commands.expanded(given.text)
                prompt.result = result = await self.agent.invoke(text, attachments=given.attachments)
                self._explain(result)
        except Exception as error:  # noqa: BLE001  raised where the answer is awaited
            prompt.failure = error
        finally:
            self._prompt = None
            prompt.done.set()
        await self.report()

    async def _prepare(self, prompt: PromptRun) -> None:
        """Ask before the first run of the session what it needs to know, unless the prompt is cancelled."""
        if self._prepared or prompt.cancelled:
            return
        with prompt.asking:
            questions = OwnQuestions(self._updates, partial(self.client.connection.request_permission, self.id))
            await ask_about_instructions(self.host, self.folder, questions)
            await start_servers(self.agent, self.servers, questions)
            self._prepared = True

    def _explain(self, result: RunResult) -> None:
        """Say why a run waits for its user."""
        if result.status == "parked" and result.error is not None:
            hint = result.error.get("hint", "")
            self._activity.say(render(f"\n\n{result.error['message']}. {hint}", prose=True))

    def cancel(self, reason: str = "cancelled in the editor") -> None:
        """Cancel the prompt in progress, if there is one."""
        if self._prompt is not None:
            self._prompt.cancelled = True
            self._prompt.asking.cancel()
            self.agent.abort(reason)

    def _take(self, event: ObserveEvent) -> None:
        if isinstance(event, AgentStart) and self._prompt is not None and self._prompt.cancelled:
            self.agent.abort("cancelled in the editor")  # before the run could be aborted
        self._activity.take(event)
        if isinstance(event, ApprovalModeSelect) and event.mode != self._activity.own_mode:
            options = options_of(self.agent)
            self._updates.put(ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    async def select_mode(self, mode: str) -> None:
        """Use another approval mode.

        Raises:
            SidebandError: if it does not exist.
        """
        modes = modes_of(self.agent)
        if modes is None or mode not in {one.id for one in modes.available_modes}:
            raise AcpOptionUnknown(MODE, mode)
        await self._use_mode(self.agent, mode)

    async def _use_mode(self, agent: Agent, mode: str) -> None:
        self._activity.own_mode = mode
        try:
            await agent.select_approval_mode(mode)
        finally:
            self._activity.own_mode = None

    async def select(self, option: str, value: object) -> ConfigOptions:
        """Choose a value of an option, and return all options.

        Raises:
            SidebandError: if that is not possible.
        """
        if option == MODE:
            await self.select_mode(str(value))
        else:
            await select_option(self.agent, option, value)
        return options_of(self.agent)

    async def replay(self) -> None:
        """Send the history, and return once it is sent."""
        messages = [one.message for one in self.agent.session.path() if isinstance(one, MessageEntry)]
        for update in history(messages, self._changes):
            self._updates.put(update)
        self._report_tasks()
        await self._updates.sent()

    def announce(self) -> None:
        """Send what the client should know about the session, once it has its id."""
        assert self._tasks is not None  # noqa: S101  set before the session is returned
        self._tasks.start_soon(self.report)

    async def report(self) -> None:
        """Send the commands and the title, if they have changed."""
        try:
            commands = await self._commands.find()
        except SidebandError as error:
            _log.warning("the commands of the session are unknown: %s", error.message)
            return
        info = self.agent.session.info
        title = " ".join(render(info.name or info.first, prose=True).split()) or None
        found: list[Update] = [
            AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands),
            SessionInfoUpdate(session_update="session_info_update", title=title),
        ]
        for update in found:
            if update not in self._known:
                self._updates.put(update)
        self._known = found

    def _report_tasks(self) -> None:
        if (plan := plan_of(self.agent.session.last_custom(TASKS))) is not None:
            self._updates.put(plan)

    def _report_usage(self) -> None:
        if (size := self.agent.context_window) is None:
            return
        cost = self.agent.usage.cost
        self._updates.put(
            UsageUpdate(
                session_update="usage_update",
                used=self.agent.context_tokens,
                size=size,
                cost=None if cost is None else Cost(amount=cost, currency="USD"),
            )
        )

    async def _send(self, update: Update) -> None:
        await self.client.connection.session_update(self.id, update)

    def _on_excess(self) -> None:
        _log.warning("the session `%s` is closed: the client does not read its updates", self.id)
        self.close()

    async def _approve(self, request: ApprovalRequest) -> Approval:
        by = f"the user of {self.client.name} (ACP)"
        call = self._activity.call_of(request.origin) or f"approval-{request.id}"
        try:
            permission = permission_of(request, call, self._changes)
        except Unanswered as error:
            return Approval("deny", reason=str(error), by=by)
        await self._updates.sent()
        try:
            response = await self.client.connection.request_permission(self.id, permission.call, permission.options)
        except (RequestError, ValidationError, ConnectionError):
            return Approval("deny", reason="the client did not ask its user", by=by)
        finally:
            self._activity.describe(call)
        return approval_of(response, permission, by)

    async def _ask(self, questions: Sequence[UserQuestion], origin: Origin) -> tuple[UserAnswer, ...]:
        form = questions_form(questions, origin.tool or "")
        schema = ElicitationSchema.model_validate(form.schema)
        mode = ElicitationFormSessionMode(
            session_id=self.id, tool_call_id=self._activity.call_of(origin), requested_schema=schema
        )
        await self._updates.sent()
        try:
            answer = await self.client.connection.create_elicitation(form.message, mode)
        except (RequestError, ValidationError, ConnectionError):
            raise AcpFailed("the client did not ask its user", hint="decide without an answer") from None
        if not isinstance(answer, AcceptElicitationResponse):
            raise AcpFailed("the user declined to answer", hint="decide without an answer")
        return answers_of(questions, answer.content or {})
