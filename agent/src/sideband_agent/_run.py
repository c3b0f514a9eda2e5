"""The state of a run in progress, and its result."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
from attrs import define, field, frozen
from sideband.broker import Redaction
from sideband.contexts import Lease
from sideband.errors import SidebandError
from sideband.exit_codes import ExitCode
from sideband.messages import AssistantMessage, Message, Usage, UserMessage

from .sessions import MessageEntry, RunEntry, Session

RunStatus = Literal["completed", "aborted", "failed", "parked"]
"""How a run ended."""


@define
class Run:
    """The processing of one input.

    Attributes:
        id: the id of the run.
        source: where its input came from.
        system_prompt: the system prompt of this run.
        model: the model that is called; differs from the agent's after a fallback.
        thinking: the level of thinking; ``None`` if the provider decides.
        turn: the number of turns since the run began or was resumed.
        step: the number of model answers in it.
        usage: the usage of its model calls, excluding children.
        messages: the messages that it has added to the conversation, oldest first.
        input: its input until that is stored.
        is_stored: whether the session contains the run.
        has_begun: whether its beginning, or its continuation after it was resumed, is stored.
        aborted: whether it was aborted, so that what still runs in it must cause no further effects.
        outer: for a child, the run of its parent.
    """

    id: str
    source: str
    model: str
    thinking: str | None = None
    system_prompt: str = ""
    turn: int = 0
    step: int = 0
    usage: Usage = field(factory=Usage)
    messages: list[Message] = field(factory=list)
    input: UserMessage | None = None
    is_stored: bool = False
    has_begun: bool = False
    aborted: bool = False
    outer: Lease | None = None

    def is_over(self) -> bool:
        """See ``Lease``."""
        return self.aborted or (self.outer is not None and self.outer.is_over())

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Note at once if a block is cancelled from outside, even while a tool in it waits for a thread."""
        ended = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._abort_if_cancelled, ended)
                yield
                ended.set()
        except BaseExceptionGroup as group:  # its only member comes from the block
            raise group.exceptions[0] from None

    async def _abort_if_cancelled(self, ended: anyio.Event) -> None:
        try:
            await ended.wait()
        except anyio.get_cancelled_exc_class():
            self.aborted = True
            raise


@frozen
class RunResult:
    """The result of a run.

    Attributes:
        status: ``completed``, ``aborted``, ``failed``, or ``parked`` if it waits for something. Failed and parked runs
            can be resumed.
        text: the text of the last answer of the model; empty without an answer.
        messages: the messages that the run added to the conversation, oldest first.
        usage: the usage of its model calls, excluding children.
        error: why it did not complete, as data with ``code``, ``message`` and ``hint``.
        run: the id of the run; empty if a plugin handled the input without one.
        session: the id of the session.
        resume_at: when to resume it, in seconds since 1970, if known.
        requests: the ids of the requests for approval that it waits for.
        exit_code: the exit code of a command that executes only this run: ``DENIED`` also if it completed, but each of
            its tool calls was denied.
    """

    status: RunStatus
    text: str
    messages: tuple[Message, ...] = field(default=(), repr=False)
    usage: Usage = field(factory=Usage)
    error: dict[str, Any] | None = None
    run: str = ""
    session: str = ""
    resume_at: float | None = None
    requests: tuple[str, ...] = ()
    exit_code: ExitCode = ExitCode.SUCCESS


def error_data(error: Exception | None, redactor: Redaction) -> dict[str, Any] | None:
    """Return an error as data without secrets; ``None`` without an error."""
    if error is None:
        return None
    if isinstance(error, SidebandError):
        redactor.error(error)
        return error.as_dict()
    message = redactor.text(f"{type(error).__name__}: {error}")
    return {"code": "agent.defect", "message": message, "hint": "report it"}


def stored_result(session: Session, entry: RunEntry) -> RunResult:
    """Return the result of a run that has ended, as far as it is stored.

    Args:
        session: the session of the run.
        entry: the entry with which it ended.
    """
    messages = stored_messages(session, entry.run)
    return RunResult(
        status="failed" if entry.status == "started" else entry.status,
        text=last_said(messages),
        messages=messages,
        usage=usage_of(messages),
        error=entry.error,
        run=entry.run,
        session=session.id,
        resume_at=entry.resume_at,
    )


def stored_messages(session: Session, run: str) -> tuple[Message, ...]:
    """Return the stored messages of a run, oldest first."""
    return tuple(one.message for one in session.path() if isinstance(one, MessageEntry) and one.run == run)


def usage_of(messages: Sequence[Message]) -> Usage:
    """Return the usage of the model calls that gave these answers."""
    return sum((one.usage for one in messages if isinstance(one, AssistantMessage)), Usage())


def last_said(messages: Sequence[Message]) -> str:
    """Return the text of the last answer of a model, or an empty string."""
    return next((one.text for one in reversed(messages) if isinstance(one, AssistantMessage)), "")
