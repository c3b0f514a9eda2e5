"""Tool calls that a program makes in the session of an agent, with the same gates as those of a model."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

import anyio
from anyio.abc import TaskGroup
from attrs import define, field
from sideband.messages import AssistantMessage, Message, ToolCallPart, ToolResultMessage

from ._announcer import Announcer
from ._run import Run
from ._tools import PlannedCall, ToolCalls
from .sessions import MessageEntry, Session


@define(eq=False)
class DirectCall:
    """A tool call of a program.

    Attributes:
        id: its id, as in ``ToolExecutionStart``.
        run, step: the id of its run, and its step in it, as in the ``Origin`` of its effects and questions.
    """

    id: str
    run: str
    step: str
    _tools: ToolCalls = field(repr=False)
    _message: ToolResultMessage | None = field(default=None, init=False, repr=False)
    _failure: Exception | None = field(default=None, init=False, repr=False)
    _ended: anyio.Event = field(factory=anyio.Event, init=False, repr=False)

    async def answer(self) -> ToolResultMessage:
        """Wait for the result of the call. Cancelling this does not cancel the call.

        Raises:
            BudgetSpent: if the budget of the session allows no further calls.
            LedgerError, StoreError: if the call could not be recorded.
        """
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure
        assert self._message is not None  # noqa: S101  set before the event
        return self._message

    def cancel(self, reason: str) -> bool:
        """Cancel the call. It may have been executed in part. Return whether it had no result yet."""
        return self._tools.cancel(self.id, reason)

    def end(self, message: ToolResultMessage, failure: Exception | None) -> None:
        """Note how the call ended."""
        self._message, self._failure = message, failure
        self._ended.set()


@define(eq=False)
class DirectCalls:
    """The tool calls of a program in one run: ``Agent.tool_calls``.

    Guards, approvals, the budget, redaction and records are those of a call of a model. Calls run at the same time as
    far as their tools allow it.

    Attributes:
        halted: why a guard halted the run; ``None`` if none did. The guards begin again in the next run.
    """

    _run: Run = field(repr=False)
    _tools: ToolCalls = field(repr=False)
    _session: Session = field(repr=False)
    _announcer: Announcer = field(repr=False)
    _tasks: TaskGroup = field(repr=False)
    halted: str | None = field(default=None, init=False)

    @property
    def ended(self) -> bool:
        """Whether the run was halted or aborted, so that further calls need another one."""
        return self.halted is not None or self._run.is_over() or self._tasks.cancel_scope.cancel_called

    def start(self, tool: str, arguments: Mapping[str, Any]) -> DirectCall:
        """Begin a tool call.

        Args:
            tool: the name of the tool.
            arguments: its arguments, which are validated.

        Returns:
            The call. It ends with the run, at the latest.
        """
        number, self._run.step = self._run.step, self._run.step + 1
        part = ToolCallPart(id=token_hex(8), name=tool, arguments=dict(arguments))
        call = DirectCall(part.id, self._run.id, f"{number}.0", self._tools)
        self._tasks.start_soon(self._answer, PlannedCall(part, call.step, parks=False), call)
        return call

    async def _answer(self, one: PlannedCall, call: DirectCall) -> None:
        failure: Exception | None = None
        try:
            if (halt := await self._tools.answer_one(one)) is not None:
                self.halted = halt.message
        except Exception as error:  # noqa: BLE001  raised where the call is awaited
            failure = error
        finally:
            with anyio.CancelScope(shield=True):  # what has happened is stored, also if the run was aborted
                try:
                    await self._store(one, call)
                except Exception as error:  # noqa: BLE001  as above
                    failure = failure or error
                call.end(one.message, failure)

    async def _store(self, one: PlannedCall, call: DirectCall) -> None:
        """Store the call with its result. A history never has a call without one."""
        messages: list[Message] = [AssistantMessage(content=[one.part], stop="tool_calls"), one.message]
        steps = call.step.partition(".")[0], call.step
        await self._session.append(
            *(
                MessageEntry(message=each, run=self._run.id, step=step)
                for each, step in zip(messages, steps, strict=True)
            )
        )
        self._run.messages += messages
        for each in messages:
            await self._announcer.emit_message(each)
