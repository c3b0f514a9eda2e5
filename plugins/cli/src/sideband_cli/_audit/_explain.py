"""Explain why an effect happened, by joining its ledger records with the session of the agent that requested it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve
from sideband.ledger import EffectRecord, LedgerEntry, find, loads, query

from .._undo._undo_effects import undoing_effects
from ._why import RunStep, Why

if TYPE_CHECKING:
    from ._history import SessionHistory

MAX_EFFECTS = 200
"""The maximum number of effects listed for one tool call."""
_MAX_ATTEMPTS = 100
_MAX_ANCESTORS = 16
_MAX_LOADS = 1_000
_TOOL_OP = "tool.call"
_MODEL_OP = "llm.generate"
_NO_AGENT = "messages are not shown: sessions cannot be read without the agent, `pip install sideband-agent`"


async def explain(ledger: Path, history: SessionHistory | None, identifier: str) -> Why | None:
    """Explain the effect or step that ``identifier`` names.

    Args:
        ledger: the folder of the ledger.
        history: the messages of sessions; ``None`` if the agent, which reads them, is not installed.
        identifier: the id of an effect, an idempotency key, ``session:run:step``, or the id of a tool call.

    Returns:
        The explanation; ``None`` if neither the ledger nor a session contains ``identifier``.
    """
    effect, where, notices = await _locate(ledger, history, identifier)
    if effect is None and where is None:
        return None
    undone_by = await undoing_effects(ledger, effect.effect) if effect is not None else ()
    parts = await _parts(ledger, effect.effect) if effect is not None else ()
    loaded = await _loads(ledger, effect) if effect is not None else ()
    why = Why(effect=effect, where=where, undone_by=undone_by, parts=parts, loads=loaded, notices=notices)
    if effect is not None and where is None and effect.origin.run:
        found = await query(ledger, run=effect.origin.run, limit=MAX_EFFECTS)
        return evolve(why, below=tuple(reversed(found)))
    if history is None and where is not None:
        why = evolve(why, notices=(*notices, _NO_AGENT))
    return await _joined(ledger, history, why, _MAX_ANCESTORS)


async def _parts(ledger: Path, effect: str) -> tuple[EffectRecord, ...]:
    """Return the effects that the op of this effect dispatched."""
    found = await query(ledger, text=effect, limit=MAX_EFFECTS)
    return _by_time([one for one in found if one.within == effect])


async def _loads(ledger: Path, effect: EffectRecord) -> tuple[LedgerEntry, ...]:
    """Return the last load, before the effect, of each plugin that ran it, caused it or decided about it."""
    decided = {str(one["plugin"]) for one in effect.decisions if one.get("plugin")}
    named = {f"op.{effect.op.partition('.')[0]}"}
    host = effect.effect.rpartition("-")[0]
    found: dict[str, LedgerEntry] = {}
    for one in await loads(ledger, host=host, limit=_MAX_LOADS):
        label = str(one.fields.get("plugin"))
        is_part = label in named or label.partition(".")[2] in {*decided, effect.origin.plugin}
        if is_part and one.fields.get("status") == "begun" and one.time <= effect.time:
            found.setdefault(label, one)
    return tuple(found[label] for label in sorted(found))


async def _locate(
    ledger: Path, history: SessionHistory | None, identifier: str
) -> tuple[EffectRecord | None, RunStep | None, tuple[str, ...]]:
    effect = await find(ledger, identifier) or _first(await query(ledger, key=identifier, limit=1))
    if effect is not None:
        return effect, RunStep.of(effect), ()
    where = RunStep.parse(identifier)
    if where is not None:
        found = await _at(ledger, where, op=_TOOL_OP if where.call else _MODEL_OP)
        effect = next((one for one in found if one.origin.step == where.step), None)
        known = effect is not None or (history is not None and await history.has(where))
        return effect, where if known else None, ()
    return await _locate_call(ledger, history, identifier)


async def _locate_call(
    ledger: Path, history: SessionHistory | None, call: str
) -> tuple[EffectRecord | None, RunStep | None, tuple[str, ...]]:
    """Find the newest tool call with this id. Some model servers restart the numbering in each answer."""
    found = [one for one in await query(ledger, op=_TOOL_OP, text=call) if one.params.get("call") == call]
    if found:
        others = ", ".join(one.effect for one in found[1:] if RunStep.of(one) != RunStep.of(found[0]))
        notices = (f"other calls have the same id; this is the newest one, the others are {others}",) if others else ()
        return found[0], RunStep.of(found[0]), notices
    return None, await history.find_call(call) if history is not None else None, ()


async def _joined(ledger: Path, history: SessionHistory | None, why: Why, generations: int) -> Why:
    """Add the surrounding records of the ledger and the session, and the explanation of the parent agent."""
    where = why.where
    if where is None:
        return why
    why = await _with_ledger(ledger, why, where)
    why = await history.added_to(why, where) if history is not None else evolve(why, sessions_read=False)
    known = [one for one in (why.effect, *why.attempts, *why.calls) if one is not None]
    parent = next((one.origin.parent for one in known if one.origin.parent), None)
    above = RunStep.parse(parent or "")
    if above is None or not generations:
        return why
    effect = _first(await _at(ledger, above, op=_TOOL_OP, limit=1))
    found = await _joined(ledger, history, Why(effect=effect, where=above), generations - 1)
    return evolve(why, parent=found)


async def _with_ledger(ledger: Path, why: Why, where: RunStep) -> Why:
    if not where.model_step:
        return why
    step = evolve(where, step=where.model_step)
    attempts = [one for one in await _at(ledger, step, op=_MODEL_OP) if one.origin.step == where.model_step]
    calls = await _at(ledger, where, op=_TOOL_OP)
    below: list[EffectRecord] = []
    if where.call:
        below = [one for one in await _at(ledger, where, limit=MAX_EFFECTS + 1) if one.op != _TOOL_OP]
        below += await query(ledger, parent=where.key, limit=MAX_EFFECTS + 1)
    return evolve(why, attempts=_by_time(attempts), calls=_by_time(calls), below=_by_time(below))


async def _at(ledger: Path, where: RunStep, **filters: Any) -> Sequence[EffectRecord]:
    options = {"limit": _MAX_ATTEMPTS, **filters}
    return await query(ledger, session=where.session, run=where.run, step=where.step or None, **options)


def _first(records: Sequence[EffectRecord]) -> EffectRecord | None:
    return records[0] if records else None


def _by_time(records: Sequence[EffectRecord]) -> tuple[EffectRecord, ...]:
    return tuple(sorted(records, key=lambda one: one.time))
