"""Why an effect happened: what the ledger says of it, joined with what the agent's session says of who asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen
from sideband.ledger import EffectRecord, find, query
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage, UserMessage
from sideband_agent.sessions import MessageEntry, RunEntry, SessionError, Sessions, SessionTree

from .._undo._taken_back import takers_back

__all__ = ["MOST_EFFECTS", "Place", "Why", "explain"]

MOST_EFFECTS = 200
"""How many effects of one tool call are listed."""
_MOST_TRIES = 100
_MOST_SESSIONS = 50
_MOST_GENERATIONS = 16
_TOOL_OP = "tool.call"
_MODEL_OP = "llm.generate"


@frozen
class Place:
    """Where in an agent's work something happened.

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
    def of(cls, record: EffectRecord) -> Place | None:
        """Where an effect happened; ``None`` if no agent asked for it."""
        origin = record.origin
        if origin.session is None or origin.run is None:
            return None
        return cls(origin.session, origin.run, origin.step or "")

    @classmethod
    def parse(cls, text: str) -> Place | None:
        """The place that ``session:run:step`` names; what follows on it in the key of an effect is left out."""
        parts = text.split(":")
        if len(parts) < 3 or not all(parts[:3]):
            return None
        return cls(parts[0], parts[1], parts[2].partition("~")[0])


@frozen(kw_only=True)
class Why:
    """All that is known of why an effect happened, or a tool call did not.

    Attributes:
        effect: the effect; ``None`` if the ledger has none.
        place: where; ``None`` if no agent asked for it.
        session: the session; ``None`` if it is not there any more.
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
    place: Place | None
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


async def explain(ledger: Path, sessions: Sessions, wanted: str) -> Why | None:
    """Explain what ``wanted`` names.

    Args:
        ledger: the ledger's folder.
        sessions: where agents keep what was said.
        wanted: the id of an effect, an idempotency key, ``session:run:step``, or the id of a tool call.

    Returns:
        ``None`` if neither the ledger nor a session knows it.
    """
    effect, place, notices = await _locate(ledger, sessions, wanted)
    if effect is None and place is None:
        return None
    taken_back = await takers_back(ledger, effect.effect) if effect is not None else ()
    parts = await _parts(ledger, effect.effect) if effect is not None else ()
    why = Why(effect=effect, place=place, taken_back=taken_back, parts=parts, notices=notices)
    if effect is not None and place is None and effect.origin.run:
        found = await query(ledger, run=effect.origin.run, limit=MOST_EFFECTS)
        return evolve(why, below=tuple(reversed(found)))
    return await _joined(ledger, sessions, why, _MOST_GENERATIONS)


async def _parts(ledger: Path, effect: str) -> tuple[EffectRecord, ...]:
    """The effects that the op of this one asked for."""
    found = await query(ledger, text=effect, limit=MOST_EFFECTS)
    return _in_time([one for one in found if one.within == effect])


async def _locate(
    ledger: Path, sessions: Sessions, wanted: str
) -> tuple[EffectRecord | None, Place | None, tuple[str, ...]]:
    effect = await find(ledger, wanted) or _first(await query(ledger, key=wanted, limit=1))
    if effect is not None:
        return effect, Place.of(effect), ()
    place = Place.parse(wanted)
    if place is not None:
        found = await _at(ledger, place, op=_TOOL_OP if place.call else _MODEL_OP)
        effect = next((one for one in found if one.origin.step == place.step), None)
        known = effect is not None or await _has(sessions, place)
        return effect, place if known else None, ()
    return await _locate_call(ledger, sessions, wanted)


async def _locate_call(
    ledger: Path, sessions: Sessions, call: str
) -> tuple[EffectRecord | None, Place | None, tuple[str, ...]]:
    """The newest tool call with this id. Small model servers begin to count anew in each answer."""
    found = [one for one in await query(ledger, op=_TOOL_OP, text=call) if one.params.get("call") == call]
    if found:
        others = ", ".join(one.effect for one in found[1:] if Place.of(one) != Place.of(found[0]))
        notices = (f"other calls have the same id; this is the newest, the others are {others}",) if others else ()
        return found[0], Place.of(found[0]), notices
    for info in await sessions.list(limit=_MOST_SESSIONS):
        tree = await _read(sessions, info.id)
        for entry in reversed(tree.entries if tree is not None else ()):
            if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage) and entry.run:
                ids = [part.id for part in entry.message.tool_calls]
                if call in ids:
                    return None, Place(info.id, entry.run, f"{entry.step}.{ids.index(call)}"), ()
    return None, None, ()


async def _has(sessions: Sessions, place: Place) -> bool:
    """Whether a session knows of the model step, or of the tool call."""
    tree = await _read(sessions, place.session)
    answer = _answer(_messages(tree, place.run), place) if tree is not None else None
    return answer is not None and (not place.call or _part(answer, place) is not None)


async def _joined(ledger: Path, sessions: Sessions, why: Why, generations: int) -> Why:
    """The same with what stands around it in the ledger and in the session."""
    place = why.place
    if place is None:
        return why
    why = await _with_ledger(ledger, why, place)
    tree = await _read(sessions, place.session)
    why = _with_session(why, place, tree) if tree is not None else why
    known = [one for one in (why.effect, *why.tries, *why.calls) if one is not None]
    parent = next((one.origin.parent for one in known if one.origin.parent), None)
    above = Place.parse(parent or "")
    if above is None or not generations:
        return why
    effect = _first(await _at(ledger, above, op=_TOOL_OP, limit=1))
    found = await _joined(ledger, sessions, Why(effect=effect, place=above), generations - 1)
    return evolve(why, parent=found)


async def _with_ledger(ledger: Path, why: Why, place: Place) -> Why:
    if not place.model_step:
        return why
    step = evolve(place, step=place.model_step)
    tries = [one for one in await _at(ledger, step, op=_MODEL_OP) if one.origin.step == place.model_step]
    calls = await _at(ledger, place, op=_TOOL_OP)
    below: list[EffectRecord] = []
    if place.call:
        below = [one for one in await _at(ledger, place, limit=MOST_EFFECTS + 1) if one.op != _TOOL_OP]
        below += await query(ledger, parent=place.key, limit=MOST_EFFECTS + 1)
    return evolve(why, tries=_in_time(tries), calls=_in_time(calls), below=_in_time(below))


def _with_session(why: Why, place: Place, tree: SessionTree) -> Why:
    messages = _messages(tree, place.run)
    runs = [entry for entry in tree.entries if isinstance(entry, RunEntry) and entry.run == place.run]
    begun = [entry for entry in runs if entry.status == "started"]
    answer = _answer(messages, place)
    part = _part(answer, place)
    return evolve(
        why,
        session=tree,
        began=begun[0] if begun else None,
        ended=runs[-1] if runs and runs[-1].status != "started" else None,
        resumed=tuple(entry.time for entry in begun[1:]),
        asked=tuple(entry for entry in messages if _was_told_before(entry, place)),
        answer=answer,
        part=part,
        result=_result(messages, place, part, why.calls),
    )


def _messages(tree: SessionTree, run: str) -> list[MessageEntry]:
    return [entry for entry in tree.entries if isinstance(entry, MessageEntry) and entry.run == run]


def _answer(messages: Sequence[MessageEntry], place: Place) -> MessageEntry | None:
    found = (one for one in messages if isinstance(one.message, AssistantMessage) and one.step == place.model_step)
    return next(found, None)


def _part(answer: MessageEntry | None, place: Place) -> ToolCallPart | None:
    number = place.call.partition(".")[2]
    calls = answer.message.tool_calls if answer and isinstance(answer.message, AssistantMessage) else ()
    return calls[int(number)] if number.isdecimal() and int(number) < len(calls) else None


def _was_told_before(entry: MessageEntry, place: Place) -> bool:
    """Whether it is something that the model was told in the run before it took the step."""
    if not isinstance(entry.message, UserMessage):
        return False
    step = entry.step or "0"
    if not (step.isdecimal() and place.model_step.isdecimal()):
        return True
    return int(step) <= int(place.model_step)


def _result(
    messages: Sequence[MessageEntry], place: Place, part: ToolCallPart | None, calls: Sequence[EffectRecord]
) -> MessageEntry | None:
    if not place.call:
        return None
    ids = {part.id} if part else {one.params.get("call") for one in calls}
    results = [one for one in messages if isinstance(one.message, ToolResultMessage)]
    # What a run that was ended has left is stored without its step.
    return next(
        (one for one in results if one.step == place.call),
        next((one for one in results if one.step is None and _call_of(one) in ids), None),
    )


def _call_of(entry: MessageEntry) -> str:
    return entry.message.call if isinstance(entry.message, ToolResultMessage) else ""


async def _at(ledger: Path, place: Place, **filters: Any) -> Sequence[EffectRecord]:
    options = {"limit": _MOST_TRIES, **filters}
    return await query(ledger, session=place.session, run=place.run, step=place.step or None, **options)


async def _read(sessions: Sessions, session: str) -> SessionTree | None:
    try:
        tree = await sessions.read(session)
    except SessionError:  # there is none, or names of others begin like it
        return None
    return tree if tree.id == session else None


def _first(records: Sequence[EffectRecord]) -> EffectRecord | None:
    return records[0] if records else None


def _in_time(records: Sequence[EffectRecord]) -> tuple[EffectRecord, ...]:
    return tuple(sorted(records, key=lambda one: one.time))


def _moment(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError):
        return 0.0
