"""What is known of why an effect happened."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from attrs import field, frozen
from sideband.ledger import EffectRecord
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage

if TYPE_CHECKING:
    from sideband_agent.sessions import MessageEntry, RunEntry, SessionTree


@frozen
class RunStep:
    """Where in the work of an agent something happened.

    Attributes:
        session, run: the agent's.
        step: a model step (``2``), one of its tool calls (``2.0``), or empty for what a plugin did beside the steps.
    """

    session: str
    run: str
    step: str = ""

    @property
    def model_step(self) -> str:
        """The model step; empty if there is none."""
        return self.step.partition(".")[0]

    @property
    def call(self) -> str:
        """The tool call; empty if it is none's."""
        return self.step if "." in self.step else ""

    @property
    def key(self) -> str:
        """As idempotency keys begin, and as effects of a child name the call that they are made for."""
        return f"{self.session}:{self.run}:{self.step}"

    @classmethod
    def of(cls, record: EffectRecord) -> RunStep | None:
        """Where an effect happened; ``None`` if no agent asked for it."""
        origin = record.origin
        if origin.session is None or origin.run is None:
            return None
        return cls(origin.session, origin.run, origin.step or "")

    @classmethod
    def parse(cls, text: str) -> RunStep | None:
        """The step that ``session:run:step`` names; what follows on it in the key of an effect is left out."""
        parts = text.split(":")
        if len(parts) < 3 or not all(parts[:3]):
            return None
        return cls(parts[0], parts[1], parts[2].partition("~")[0])


@frozen(kw_only=True)
class Why:
    """All that is known of why an effect happened, or a tool call did not.

    Attributes:
        effect: the effect; ``None`` if the ledger has none.
        where: the step of an agent; ``None`` if no agent asked for it.
        sessions_read: whether sessions could be read, which takes the package of the agent.
        session: the session; ``None`` if it is not there any more, or could not be read.
        began, ended: the run, as its session has it.
        resumed: when the run was gone on with, after it had stopped.
        asked: what the model was told in the run until then.
        answer: the model's message that asked for the call, or that is the effect's result.
        tries: the model calls of that step, oldest first.
        part: the tool call, as the model wrote it.
        calls: the records of that tool call, or, if a model step is meant, of all tool calls that it asked for.
        below: what the call did, oldest first, what a child agent did for it included.
        result: what the model was told of the call.
        parent: why the agent was there, if it is a child of another one.
        taken_back: the effects that took this one back, or tried to.
        parts: the effects that its op asked for, oldest first.
        notices: what the reader should know besides.
    """

    effect: EffectRecord | None
    where: RunStep | None
    sessions_read: bool = True
    session: SessionTree | None = field(default=None, repr=False)
    began: RunEntry | None = None
    ended: RunEntry | None = None
    resumed: tuple[str, ...] = ()
    asked: tuple[MessageEntry, ...] = ()
    answer: MessageEntry | None = None
    tries: tuple[EffectRecord, ...] = ()
    part: ToolCallPart | None = None
    calls: tuple[EffectRecord, ...] = ()
    below: tuple[EffectRecord, ...] = ()
    result: MessageEntry | None = None
    parent: Why | None = None
    taken_back: tuple[EffectRecord, ...] = ()
    parts: tuple[EffectRecord, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def model_message(self) -> AssistantMessage | None:
        """The model's message."""
        message = self.answer.message if self.answer else None
        return message if isinstance(message, AssistantMessage) else None

    @property
    def told(self) -> ToolResultMessage | None:
        """The result, as the model got it."""
        message = self.result.message if self.result else None
        return message if isinstance(message, ToolResultMessage) else None

    @property
    def model_replayed(self) -> bool:
        """Whether the model's message was taken from the record, when the run went on, instead of asking again."""
        if self.answer is None or not self.tries:
            return False
        asked, stored = _moment(self.tries[-1].time), _moment(self.answer.time)
        return any(asked < _moment(time) <= stored for time in self.resumed)

    @property
    def tool_replayed(self) -> bool:
        """Whether the result was taken from the record, instead of running the tool again."""
        return self.told is not None and self.told.metadata.get("replayed") is True


def _moment(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError):
        return 0.0
