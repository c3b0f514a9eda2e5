"""The state of a run in progress, and its result."""

from __future__ import annotations

from typing import Any, Literal

from attrs import define, field, frozen
from sideband.exit_codes import ExitCode
from sideband.messages import Message, Usage, UserMessage

RunStatus = Literal["completed", "aborted", "failed", "parked"]


@define
class Run:
    """The processing of one input.

    Attributes:
        id: the id of the run.
        source: where its input came from.
        system_prompt: the system prompt of this run.
        model: the model that is called; differs from the agent's after a fallback.
        turn: the number of turns since the run began or was resumed.
        step: the number of model answers in it.
        usage: the usage of its model calls, excluding children.
        messages: the messages that it has added to the conversation, oldest first.
        input: its input until that is stored.
        is_stored: whether the session contains the run.
    """

    id: str
    source: str
    model: str
    system_prompt: str = ""
    turn: int = 0
    step: int = 0
    usage: Usage = field(factory=Usage)
    messages: list[Message] = field(factory=list)
    input: UserMessage | None = None
    is_stored: bool = False


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
    exit_code: ExitCode = ExitCode.SUCCESS
