"""Tool calls that a run which was given up has left without results: what is recorded of them is told to the model."""

from __future__ import annotations

from ..broker import Broker
from ..messages import ToolResultMessage
from ._conversation import unanswered
from ._tool_effects import ToolAnswer
from .sessions import MessageEntry, Session

__all__ = ["settle_calls"]


async def settle_calls(session: Session, broker: Broker) -> None:
    """Store a result for each call that the last answer of the session still waits for."""
    pending = unanswered(session.messages())
    if pending is None:
        return
    message, calls = pending
    asked = next(
        entry for entry in reversed(session.path()) if isinstance(entry, MessageEntry) and entry.message == message
    )
    results = []
    for call in calls:
        step = f"{asked.step}.{message.tool_calls.index(call)}"
        answer = _ELSEWHERE
        if not session.tree.is_copied(asked.id):
            answer = await _recalled(broker, f"{session.id}:{asked.run}:{step}")
        result = ToolResultMessage.model_validate(
            {
                "call": call.id,
                "tool": call.name,
                "content": answer.content,
                "is_error": answer.is_error,
                "metadata": answer.metadata,
            }
        )
        results.append(MessageEntry(message=result, run=asked.run, step=step))
    await session.append(*results)


# What a file says of a run finds no record here, whatever names it gives: that could be another session's.
_ELSEWHERE = ToolAnswer.error(
    "This call was made in another session, from which this one was copied. Whether it did its work is not known here: "
    "find out how things stand before you decide what to do.",
    code="effect.unknown",
    unknown=True,
)


async def _recalled(broker: Broker, key: str) -> ToolAnswer:
    found = await broker.recall(key)
    if found is None:
        return ToolAnswer.error("This call was not run, because its run ended before.", code="tool.skipped")
    state, result = found
    if state == "done":
        return ToolAnswer.model_validate(result).noting(replayed=True)
    return ToolAnswer.error(
        "It is not known whether this call did its work: its run ended while it was under way, and it was not "
        "repeated. Find out how things stand before you decide what to do.",
        code="effect.unknown",
        unknown=True,
    )
