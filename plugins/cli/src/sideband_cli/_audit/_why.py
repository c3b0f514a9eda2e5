"""The explanation of an effect."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from attrs import field, frozen
from sideband.ledger import EffectRecord, LedgerEntry
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage

if TYPE_CHECKING:
    from sideband_agent.sessions import EntryTree, MessageEntry, RunEntry


@frozen
class RunStep:
    """A position in a run of an agent.

    Attributes:
        session, run: the ids of the session and the run.
        step: a model step (``2``), one of its tool calls (``2.0``), or empty for a plugin's effect outside any step.
    """

    session: str
    run: str
    step: str = ""

    @property
    def model_step(self) -> str:
        """The model step, or an empty string."""
        return self.step.partition(".")[0]

    @property
    def call(self) -> str:
        """The tool call, or an empty string."""
        return self.step if "." in self.step else ""

    @property
    def key(self) -> str:
        """The prefix of idempotency keys; effects of a child agent name their parent's call by it."""
        return f"{self.session}:{self.run}:{self.step}"

    @classmethod
    def of(cls, record: EffectRecord) -> RunStep | None:
        """Return the step of an effect; ``None`` if no agent requested it."""
        origin = record.origin
        if origin.session is None or origin.run is None:
            return None
        return cls(origin.session, origin.run, origin.step or "")

    @classmethod
    def parse(cls, text: str) -> RunStep | None:
        """Parse ``session:run:step``, ignoring anything that follows it in the key of an effect."""
        parts = text.split(":")
        if len(parts) < 3 or not all(parts[:3]):
            return None
        return cls(parts[0], parts[1], parts[2].partition("~")[0])


@frozen(kw_only=True)
class Why:
    """Everything known about why an effect happened, or why a tool call did not run.

    Attributes:
        effect: the effect; ``None`` if the ledger does not contain it.
        where: the step of an agent; ``None`` if no agent requested the effect.
        sessions_read: whether sessions could be read, which requires the agent package.
        session: the session; ``None`` if it no longer exists or could not be read.
        began, ended: the first and last entry of the run in its session.
        resumed: the times at which the run was resumed.
        asked: the user messages of the run up to this step.
        answer: the model's message that contains the tool call, or that is the effect's result.
        attempts: the model calls of the step, oldest first.
        part: the tool call as written by the model.
        calls: the records of the tool call; for a model step, the records of all its tool calls.
        below: the effects of the call, oldest first, including those of child agents.
        result: the tool result as sent to the model.
        parent: the explanation of the parent's tool call, for a child agent.
        undone_by: the effects that undid this one or tried to.
        parts: the effects that its op dispatched, oldest first.
        loads: the loads of the plugins that ran or decided the effect.
        notices: additional remarks.
    """

    effect: EffectRecord | None
    where: RunStep | None
    sessions_read: bool = True
    session: EntryTree | None = field(default=None, repr=False)
    began: RunEntry | None = None
    ended: RunEntry | None = None
    resumed: tuple[str, ...] = ()
    asked: tuple[MessageEntry, ...] = ()
    answer: MessageEntry | None = None
    attempts: tuple[EffectRecord, ...] = ()
    part: ToolCallPart | None = None
    calls: tuple[EffectRecord, ...] = ()
    below: tuple[EffectRecord, ...] = ()
    result: MessageEntry | None = None
    parent: Why | None = None
    undone_by: tuple[EffectRecord, ...] = ()
    parts: tuple[EffectRecord, ...] = ()
    loads: tuple[LedgerEntry, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def model_message(self) -> AssistantMessage | None:
        """The model's message, or ``None``."""
        message = self.answer.message if self.answer else None
        return message if isinstance(message, AssistantMessage) else None

    @property
    def tool_result(self) -> ToolResultMessage | None:
        """The tool result as sent to the model, or ``None``."""
        message = self.result.message if self.result else None
        return message if isinstance(message, ToolResultMessage) else None

    @property
    def model_replayed(self) -> bool:
        """Whether a resumed run took the model's message from the record instead of calling the model again."""
        if self.answer is None or not self.attempts:
            return False
        asked, stored = _moment(self.attempts[-1].time), _moment(self.answer.time)
        return any(asked < _moment(time) <= stored for time in self.resumed)

    @property
    def tool_replayed(self) -> bool:
        """Whether the result was taken from the record instead of running the tool again."""
        return self.tool_result is not None and self.tool_result.metadata.get("replayed") is True


def _moment(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError):
        return 0.0
