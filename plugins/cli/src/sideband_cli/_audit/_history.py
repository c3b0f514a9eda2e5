"""The messages of a step in an agent's session: the user's requests, the model's answer and the tool results."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen
from sideband.ledger import EffectRecord
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage, UserMessage
from sideband_agent.sessions import EntryTree, MessageEntry, RunEntry, SessionError, Sessions

from ._why import RunStep, Why

_MAX_SESSIONS = 50


@frozen
class SessionHistory:
    """The messages of sessions.

    Args:
        sessions: the stored sessions.
    """

    _sessions: Sessions

    async def find_call(self, call: str) -> RunStep | None:
        """Return the newest tool call with this id."""
        for info in await self._sessions.list(limit=_MAX_SESSIONS):
            tree = await self._read(info.id)
            for entry in reversed(tree.entries if tree is not None else ()):
                if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage) and entry.run:
                    ids = [part.id for part in entry.message.tool_calls]
                    if call in ids:
                        return RunStep(info.id, entry.run, f"{entry.step}.{ids.index(call)}")
        return None

    async def has(self, where: RunStep) -> bool:
        """Return whether a session contains the model step or the tool call."""
        tree = await self._read(where.session)
        answer = _answer(_messages(tree, where.run), where) if tree is not None else None
        return answer is not None and (not where.call or _part(answer, where) is not None)

    async def added_to(self, why: Why, where: RunStep) -> Why:
        """Return ``why`` with the messages of the session, or unchanged if the session no longer exists."""
        tree = await self._read(where.session)
        return _with_session(why, where, tree) if tree is not None else why

    async def _read(self, session: str) -> EntryTree | None:
        try:
            tree = await self._sessions.read(session)
        except SessionError:  # it does not exist, or the id is an ambiguous prefix
            return None
        return tree if tree.id == session else None


def _with_session(why: Why, where: RunStep, tree: EntryTree) -> Why:
    messages = _messages(tree, where.run)
    runs = [entry for entry in tree.entries if isinstance(entry, RunEntry) and entry.run == where.run]
    begun = [entry for entry in runs if entry.status == "started"]
    answer = _answer(messages, where)
    part = _part(answer, where)
    return evolve(
        why,
        session=tree,
        began=begun[0] if begun else None,
        ended=runs[-1] if runs and runs[-1].status != "started" else None,
        resumed=tuple(entry.time for entry in begun[1:]),
        asked=tuple(entry for entry in messages if _is_request_before(entry, where)),
        answer=answer,
        part=part,
        result=_result(messages, where, part, why.calls),
    )


def _messages(tree: EntryTree, run: str) -> list[MessageEntry]:
    return [entry for entry in tree.entries if isinstance(entry, MessageEntry) and entry.run == run]


def _answer(messages: Sequence[MessageEntry], where: RunStep) -> MessageEntry | None:
    found = (one for one in messages if isinstance(one.message, AssistantMessage) and one.step == where.model_step)
    return next(found, None)


def _part(answer: MessageEntry | None, where: RunStep) -> ToolCallPart | None:
    number = where.call.partition(".")[2]
    calls = answer.message.tool_calls if answer and isinstance(answer.message, AssistantMessage) else ()
    return calls[int(number)] if number.isdecimal() and int(number) < len(calls) else None


def _is_request_before(entry: MessageEntry, where: RunStep) -> bool:
    """Return whether the entry is a user message that the model saw before it took the step."""
    if not isinstance(entry.message, UserMessage):
        return False
    step = entry.step or "0"
    if not (step.isdecimal() and where.model_step.isdecimal()):
        return True
    return int(step) <= int(where.model_step)


def _result(
    messages: Sequence[MessageEntry], where: RunStep, part: ToolCallPart | None, calls: Sequence[EffectRecord]
) -> MessageEntry | None:
    if not where.call:
        return None
    ids = {part.id} if part else {one.params.get("call") for one in calls}
    results = [one for one in messages if isinstance(one.message, ToolResultMessage)]
    # The results of an aborted run are stored without their step.
    return next(
        (one for one in results if one.step == where.call),
        next((one for one in results if one.step is None and _call_of(one) in ids), None),
    )


def _call_of(entry: MessageEntry) -> str:
    return entry.message.call if isinstance(entry.message, ToolResultMessage) else ""
