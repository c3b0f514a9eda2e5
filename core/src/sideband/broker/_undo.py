"""Undo effects. The op of an effect plans the undo. Its steps are effects, authorized and recorded as usual."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ..errors import SidebandError
from ..ledger import EffectRecord, Ledger, find, query
from ..ledger._keys import UNDO
from ..ops import Level, OpSpec, Undo
from ._broker import Broker
from ._call import Call
from ._errors import EffectMissing, as_op_error
from ._lookup import ANSWER_OP, OWN_OPS
from ._spec_calls import call_spec

_MAX_EFFECTS = 1_000
_TOOL_CALL = "tool.call"


@frozen
class PlannedStep:
    """One step of an undo plan, which is an effect itself.

    Args:
        effect: the id of the effect that it undoes.
        op: the op to run.
        params: the parameters of the op.
        text: a description for the user who approves the plan.
        key: the idempotency key, which prevents a second undo.
        state: ``None`` if the step was not run, else ``done`` or ``unknown``.
    """

    effect: str
    op: str
    params: Mapping[str, Any] = field(repr=False)
    text: str
    key: str
    state: str | None = None


@frozen
class UndoPlan:
    """The steps that would undo an effect, and the parts that cannot be undone. Making a plan changes nothing.

    Args:
        effect: the id of the effect.
        op: the op of the effect.
        steps: the steps in the order in which they run.
        remains: the parts that cannot be undone, one sentence each.
    """

    effect: str
    op: str
    steps: tuple[PlannedStep, ...] = ()
    remains: tuple[str, ...] = ()

    @property
    def open(self) -> tuple[PlannedStep, ...]:
        """The steps that are not done."""
        return tuple(step for step in self.steps if step.state != "done")


@frozen
class UndoneStep:
    """The outcome of one step.

    Args:
        step: the step.
        result: the result of its op.
        error: the error, if the step failed. Later steps were not run.
    """

    step: PlannedStep
    result: Any = None
    error: SidebandError | None = None


async def plan_undo(broker: Broker, ledger: Ledger, call: Call, effect: str) -> UndoPlan:
    """Plan the undo of an effect, or of all effects of a tool call, by asking their ops.

    Raises:
        EffectMissing: if the effect does not exist.
        OpError: if the op's plugin cannot be loaded, or planning failed.
    """
    record = await find(ledger.folder, effect)
    if record is None:
        raise EffectMissing(effect)
    records = await _effects_of(ledger, record) if record.op in OWN_OPS else (record,)
    clean = broker.redactor.text
    steps: list[PlannedStep] = []
    remains: list[str] = []
    for one in records:
        plan = await _plan(broker, call, one)
        about = f"{one.op} ({one.effect}): " if len(records) > 1 else ""
        remains += [f"{about}{sentence}" for sentence in plan.remains]
        for number, step in enumerate(plan.steps):
            key = f"{UNDO}{one.effect}:{number}"
            known = await broker.recall(key)
            state = known[0] if known else None
            steps.append(PlannedStep(one.effect, step.op, step.params, clean(step.text), key, state))
    return UndoPlan(effect, record.op, tuple(steps), tuple(map(clean, remains)))


async def effects_to_undo(ledger: Ledger, *, session: str | None, run: str | None) -> Sequence[EffectRecord]:
    """Return what a session or a run may have changed, newest first, with what its child agents may have changed."""
    changed: list[EffectRecord] = []
    wanted: list[tuple[str | None, ...]] = [(session, run, None)]
    while wanted:
        of_session, of_run, parent = wanted.pop()
        records = await query(ledger.folder, session=of_session, run=of_run, parent=parent, limit=sys.maxsize)
        changed += [one for one in records if _may_have_changed(one)]
        calls = [one.origin for one in records if one.op == _TOOL_CALL]
        wanted += [(None, None, f"{one.session}:{one.run}:{one.step}") for one in calls]
    return sorted(changed, key=lambda one: one.entries[0].seq, reverse=True)


def _may_have_changed(record: EffectRecord) -> bool:
    if record.op in {*OWN_OPS, ANSWER_OP} or record.status == "denied" or "cassette" in record.note:
        return False
    return record.level is None or record.level > Level.MONITORED


async def carry_out(broker: Broker, call: Call, plan: UndoPlan) -> Sequence[UndoneStep]:
    """Run the open steps in order, and stop at the first failure."""
    outcomes: list[UndoneStep] = []
    for step in plan.open:
        try:
            result = await broker.dispatch(call, step.op, step.params, key=step.key)
        except SidebandError as error:
            outcomes.append(UndoneStep(step, error=error))
            break
        outcomes.append(UndoneStep(step, result))
    return outcomes


async def _effects_of(ledger: Ledger, record: EffectRecord) -> Sequence[EffectRecord]:
    """Return the effects of a tool call, newest first, which is the order in which they are undone."""
    origin = record.origin
    found = await query(ledger.folder, session=origin.session, run=origin.run, step=origin.step, limit=_MAX_EFFECTS)
    return [one for one in found if one.op not in {*OWN_OPS, ANSWER_OP} and one.origin.step == origin.step]


async def _plan(broker: Broker, call: Call, record: EffectRecord) -> Undo:
    if record.status == "denied":
        return Undo(remains=("it was denied: nothing happened",))
    if "cassette" in record.note:
        return Undo(remains=(f"it was replayed from the cassette {record.note['cassette']}: nothing happened",))
    bound = await broker.ops.get(record.op)
    if bound.spec.undo is None:
        return Undo(remains=(_not_undoable(bound.spec, bound.plugin.record.name),))
    try:
        return await call_spec(broker, bound.spec.undo, bound, call, record)
    except Exception as raised:  # noqa: BLE001  any exception of a plugin becomes a typed error
        by = bound.plugin.record
        error = as_op_error(raised, op=record.op, plugin=by.name, package=by.package)
        broker.redactor.error(error)
        raise error from None


def _not_undoable(spec: OpSpec, plugin: str) -> str:
    if spec.level <= Level.MONITORED:
        return f"nothing to undo: {spec.name} changes nothing"
    return f"plugin `{plugin}` does not support undoing {spec.name}"
