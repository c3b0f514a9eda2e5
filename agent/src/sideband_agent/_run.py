"""What a run is while it goes on, and what it came to."""

from __future__ import annotations

from typing import Any, Literal

from attrs import define, field, frozen
from sideband.exit_codes import ExitCode
from sideband.messages import Message, Usage, UserMessage

RunStatus = Literal["completed", "aborted", "failed", "parked"]


@define
class Run:
    """One input until it is settled.

    Attributes:
        id: the id of the run.
        source: where its input came from.
        system_prompt: as it is for this run.
        model: the model that answers now; another one than the agent's after a fall-back.
        turn: the number of turns that have begun, since it was begun or resumed.
        step: the number of answers that models gave in it.
        usage: what its model calls used, children excluded.
        messages: what it has added to the conversation, oldest first.
        input: what it begins with, while that is not stored.
        is_stored: whether the session knows of it.
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
    """What a run came to.

    Attributes:
        status: ``completed``; ``aborted`` by somebody; ``failed``; or ``parked``, waiting for something. All but the
            first two can be resumed.
        text: the last thing that the model said; empty if it said nothing.
        messages: what the run added to the conversation, oldest first.
        usage: what its model calls used, those of children excluded.
        error: why it has not completed, as data with ``code``, ``message`` and ``hint``.
        run: the id of the run; empty if the input was answered without one.
        session: the id of the session.
        resume_at: when going on is worth trying, in seconds since 1970, if that is known.
        exit_code: what a command that stands for this run ends with.
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
