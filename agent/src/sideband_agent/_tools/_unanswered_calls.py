"""Answer the tool calls that an abandoned run left without results, from their records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sideband.messages import AssistantMessage

from .._history import unanswered
from ..sessions import MessageEntry, Session
from ._tool_answer import ToolAnswer
from ._tool_calls import ToolCalls


async def settle_calls(session: Session, tools: ToolCalls, sync: Callable[[], Awaitable[None]]) -> None:
    """Store a result for each unanswered call of the session's last answer.

    Plugins may change a recorded result, like the result of a new call.

    Args:
        session: the session.
        tools: finds the records of the calls.
        sync: returns when everything recorded so far is on disk. The model must not see the results before.
    """
    pending = unanswered(session.messages())
    if pending is None:
        return
    message, calls = pending
    asked = _asked(session, message)
    results = []
    for call in calls:
        step = f"{asked.step}.{message.tool_calls.index(call)}"
        answer = await _recorded(session, asked, step, tools, call.name)
        results.append(MessageEntry(message=await tools.recalled(call, answer), run=asked.run, step=step))
    await session.append(*results)
    await sync()
    for one in results:
        await tools.contexts.children.forget(one.run or "", one.step or "")


# An imported file may name any run, so records of copied entries are not looked up: they could be another session's.
_ELSEWHERE = ToolAnswer.error(
    "This call was made in another session, from which this one was copied. It is unknown whether it was executed: "
    "check the current state before you decide what to do.",
    code="effect.unknown",
    unknown=True,
)


def _asked(session: Session, message: AssistantMessage) -> MessageEntry:
    found = (one for one in reversed(session.path()) if isinstance(one, MessageEntry) and one.message == message)
    return next(found)


async def _recorded(session: Session, asked: MessageEntry, step: str, tools: ToolCalls, name: str) -> ToolAnswer:
    """Return the recorded answer of a call."""
    if session.tree.is_copied(asked.id):
        return _ELSEWHERE
    answer = await tools.effects.recall(f"{session.id}:{asked.run}:{step}", name)
    return answer or ToolAnswer.error("This call was not run because its run ended first.", code="tool.skipped")
