"""The loop of a chat: run chat commands, send messages, and queue messages while the agent is working."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import (
    TASK_STATUS_IGNORED,
    CancelScope,
    Event,
    create_task_group,
    current_time,
    move_on_after,
    open_signal_receiver,
)
from sideband import SidebandError

from .._agent._activity import Activity
from .._agent._run_results import describe_overruns, describe_problem
from .._terminal._words import describe_duration, one_line
from ._chat_command_table import ChatCommandTable, plugin_chat_commands
from ._commands import OWN_CHAT_COMMANDS
from ._last_turns import last_turns
from ._mentions import mentioned
from ._status_line import plugin_texts, status_line
from ._user_program import run_line

if TYPE_CHECKING:
    from anyio.abc import TaskGroup, TaskStatus
    from sideband.hooks import ObserveEvent
    from sideband_agent import Agent, RunResult

    from ._frontend import ChatFrontend

_LONG_SECONDS = 10.0  # the user may have turned to something else, and hears when it is done
# Replacements for hints that refer to options or calls not available in a chat.
_HINTS = {
    "agent.busy": "wait until the agent is done, or abort the run with Ctrl-C",
    "session.exists": "choose another file name",
    "session.missing": "`/sessions` lists all sessions",
    "state.unwritable": "check that its folder exists, the free space and the permissions",
}


class Chat:
    """A chat with an agent.

    Args:
        frontend: creates the frontend, which reads status and chat commands from the chat.
        thinking: whether to show the model's thinking.
        quiet, verbose: how much to show of its activity; see ``Activity``.

    Attributes:
        terminated: whether a termination signal of another process ended the chat.
    """

    def __init__(
        self,
        frontend: Callable[[Chat], ChatFrontend],
        *,
        thinking: bool = False,
        quiet: bool = False,
        verbose: bool = False,
    ) -> None:
        self.chat_commands = ChatCommandTable()
        self._agent: Agent | None = None
        self._tasks: TaskGroup | None = None
        self._done: Event | None = None  # set at the end of the current run
        self._began = 0.0
        self._texts: tuple[str, ...] = ()  # of plugins, in the status
        self._turns = 0
        self._chat_command: CancelScope | None = None
        self.terminated = False
        self._aborting = False
        self._leaving: CancelScope | None = None
        self.frontend = frontend(self)
        self._activity = Activity(self.frontend, thinking=thinking, quiet=quiet, verbose=verbose)

    def take(self, event: ObserveEvent) -> None:
        """Show an event of the agent."""
        self._activity.take(event)
        self._turns += event.hook == "turn_end"
        if event.hook == "queue_update":
            self.frontend.refresh()

    def redact(self, text: str) -> str:
        """Return the text with all known secrets redacted."""
        return text if self._agent is None else self._agent.host.redactor.text(text)

    def status(self) -> str:
        """Return the lines above the prompt."""
        if self._agent is None:
            return ""
        return "\n".join([status_line(self._agent, self._texts), *([self._working()] if self.is_working else [])])

    def _working(self) -> str:
        """Describe how long the run has taken, and what it waits for."""
        seconds = describe_duration(int(current_time() - self._began))
        return f"working {seconds}, waiting for {self._activity.awaited}; Esc or Ctrl-C to abort"

    def title(self) -> str:
        """Return the title of the terminal."""
        if self._agent is None:
            return ""
        session = self._agent.session
        return f"{session.name or self._agent.folder.name} - sideband"

    def commands(self) -> list[tuple[str, str]]:
        """Return the names and the summaries of the chat commands, for completion."""
        return self.chat_commands.summaries

    def folder(self) -> Path:
        """Return the folder to which paths are relative."""
        return Path.cwd() if self._agent is None else self._agent.folder

    def help(self) -> str:
        """Return all chat commands as a table."""
        return self.chat_commands.help()

    @property
    def agent(self) -> Agent:
        """The agent of the chat."""
        assert self._agent is not None  # noqa: S101  set before the first read
        return self._agent

    @property
    def is_working(self) -> bool:
        """Whether a run is in progress."""
        return self._done is not None

    async def talk(self, agent: Agent) -> None:
        """Read and answer messages until the user leaves."""
        self._agent = agent
        await self._find_commands()
        failure: Exception | None = None
        async with self.frontend.opened():
            async with create_task_group() as tasks:
                self._tasks = tasks
                await tasks.start(self._watch_signals)  # a signal may arrive with the first line
                try:
                    await self._ask_plugins()
                    self._welcome(agent)
                    await self._read_all(agent)
                    await self._end_run(agent)
                except Exception as error:  # noqa: BLE001  re-raised outside the task group, which would wrap it
                    failure = error
                tasks.cancel_scope.cancel()
            self._say_how_to_continue()
        if failure is not None:
            raise failure

    def _welcome(self, agent: Agent) -> None:
        self.frontend.line(f"session {agent.session.name or agent.session.id}")
        self.frontend.line("/help for commands, Ctrl-D to leave")
        for text, answer in last_turns(agent.session.context().messages):
            self.frontend.line(f"> {text}")
            self.frontend.text(answer)
            self.frontend.end_text()
        for problem in (*self.chat_commands.problems, *agent.session.notices):
            self.frontend.line(f"notice: {problem}")
        if agent.goal is not None:
            self.frontend.line(f"goal: {one_line(agent.goal)}")
        if agent.session.unfinished_run() is not None:
            self.frontend.line("the last run of this session did not finish; /retry resumes it")

    def _say_how_to_continue(self) -> None:
        session = self.agent.session
        if session.context().messages:
            self.frontend.end_text()
            self.frontend.line(f"to continue: sideband chat --session {session.id}")

    async def _read_all(self, agent: Agent) -> None:
        while not agent.wants_shutdown:
            try:
                text = await self.frontend.read()
            except EOFError:
                return
            if text.startswith("/") and not self._is_for_source(text):
                await self._interruptible(text, partial(self._run_command, text))
            elif text.startswith("!"):
                await self._interruptible(text, partial(self._run_program, text))
            elif text.strip():
                await self.send(text.strip())

    async def _find_commands(self) -> None:
        self.chat_commands = ChatCommandTable(OWN_CHAT_COMMANDS, await plugin_chat_commands(self.agent))

    async def _run_command(self, line: str) -> str | None:
        if not self.chat_commands.has(line):  # a plugin may have it since, such as one that is a new file
            await self._find_commands()
        return await self.chat_commands.run(self, line)

    def _is_for_source(self, text: str) -> bool:
        """Return whether a slash command is that of a source of tools, such as a prompt: a message that it replaces."""
        space, sign, _ = text[1:].partition(" ")[0].partition("__")
        return bool(sign) and space in {one.source.name for one in self.agent.host.tools.session_sources}

    async def send(self, text: str) -> None:
        """Send a message with the files that it names. If a run is in progress, queue it for the next step."""
        try:
            found = mentioned(text, self.folder())
        except SidebandError as error:
            self._show_error(error)
            self.frontend.suggest(text)
            return
        attachments = [*found.attachments, *self.frontend.take_images(text)]
        for path in found.paths:
            self.frontend.line(f"with {path}")
        if self.is_working:
            self.agent.steer(found.text, attachments=attachments)
            self.frontend.line("queued for the next step")
        else:
            await self.begin(lambda: self.agent.invoke(found.text, attachments=attachments))

    async def begin(self, work: Callable[[], Awaitable[RunResult | None]]) -> None:
        """Start a run in the background while the user types."""
        assert self._tasks is not None  # noqa: S101  set before the first read
        done = self._done = Event()
        self._began = current_time()
        self._tasks.start_soon(self._work, work, done)
        self._tasks.start_soon(self._refresh, done)
        if self.frontend.takes_turns:
            await done.wait()

    async def _refresh(self, done: Event) -> None:
        """Redraw the status each second, since it shows how long the run has taken."""
        turns = self._turns
        while not done.is_set():
            with move_on_after(1.0):
                await done.wait()
            if turns != self._turns or done.is_set():
                turns = self._turns
                await self._ask_plugins()
            self.frontend.refresh()

    async def _ask_plugins(self) -> None:
        """Ask plugins what they add to the status."""
        self._texts = await plugin_texts(self.agent)

    async def _work(self, work: Callable[[], Awaitable[RunResult | None]], done: Event) -> None:
        result = None
        try:
            result = await work()
            self._show_result(result)
        except SidebandError as error:
            self._show_error(error)
        finally:
            self._done = None
            self._aborting = False
            done.set()
            self.frontend.refresh()
            if current_time() - self._began > _LONG_SECONDS:
                self.frontend.ring()
        if self.agent.wants_shutdown:
            self.frontend.leave()
        elif result is not None and result.status == "completed":
            await self._begin_queued(self.agent)
        else:
            self._return_queued(self.agent)

    async def _begin_queued(self, agent: Agent) -> None:
        """Start a run for a message that was queued after the last run had checked its queue."""
        if agent.has_pending_messages:
            await self.begin(agent.invoke_queued)

    def _return_queued(self, agent: Agent) -> None:
        """Put unprocessed messages back into the prompt."""
        if returned := agent.clear_queues():
            self.frontend.suggest("\n".join(one.text for one in returned))

    def _show_result(self, result: RunResult | None) -> None:
        self.frontend.end_text()
        if result is None:
            self.frontend.line("nothing to resume: the last run has ended; send a message to continue")
            return
        if not result.run and result.text:  # answered by a plugin
            self.frontend.say(result.text)
        for line in [*describe_problem(result, resume="/retry"), *describe_overruns(result, self.agent)]:
            self.frontend.line(line)

    def _show_error(self, error: SidebandError) -> None:
        self.frontend.line(f"error: {error.message} [{error.code}]")
        if hint := _HINTS.get(error.code, error.hint):
            self.frontend.line(f"hint: {hint}")

    async def _run_program(self, line: str) -> str:
        try:
            output = await run_line(self.agent, line)
        finally:
            self.frontend.progress("")  # the last line of its output
        if output.exit_code:
            self.frontend.line(f"{output.outcome}: {one_line(output.command)}")
        return output.text

    async def _interruptible(self, line: str, work: Callable[[], Awaitable[str | None]]) -> None:
        """Run a chat command or a program, until Ctrl-C."""
        with CancelScope() as self._chat_command:
            if not self.frontend.takes_turns:
                self.frontend.progress(f"{line.partition(' ')[0]}; Ctrl-C to stop")
            try:
                shown = await work()
            except SidebandError as error:
                self._show_error(error)
            else:
                if shown:
                    self.frontend.say(shown)
            finally:
                self.frontend.progress("")
        await self._ask_plugins()
        if self._chat_command.cancelled_caught:
            self.frontend.line(f"{one_line(line.partition(' ')[0])} was interrupted")
        self._chat_command = None

    def unfold(self) -> None:
        """Show the output of the last tool call, then that of the one before it."""
        if not self._activity.unfold():
            self.frontend.line("no more output of tools to show")

    def interrupt(self) -> bool:
        """Return whether something was interrupted: a chat command, the run, or at the second time the chat."""
        if self._chat_command is not None:
            self._chat_command.cancel()
        elif not self.is_working:
            return False
        elif self._aborting:
            self.frontend.leave()
            if self._leaving is not None:
                self._leaving.cancel()
        else:
            self._aborting = True
            self.agent.abort("interrupted")
            self.frontend.line("aborting the run; press Ctrl-C again to leave the chat")
        return True

    async def _watch_signals(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Handle interrupts while no key can be read, and termination, which must restore the terminal."""
        with open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            task_status.started()
            async for number in signals:
                if number != signal.SIGINT:
                    self.terminated = True
                    self.frontend.leave()
                elif not self.interrupt():
                    self.frontend.line("use Ctrl-D or /quit to leave")

    async def _end_run(self, agent: Agent) -> None:
        """Abort the current run when the user leaves, keeping its messages and effects.

        A run that is already being aborted is not waited for: the user has pressed Ctrl-C twice.
        """
        if self._done is None or self._aborting:
            return
        self._aborting = True
        agent.abort("the user left")
        with CancelScope() as self._leaving:
            await self._done.wait()
