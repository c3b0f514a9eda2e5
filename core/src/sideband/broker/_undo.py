"""Taking effects back: planned by the ops that caused them, done by other effects, each gated and recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ..errors import SidebandError
from ..ledger import EffectRecord, Ledger, find, query
from ..ops import Level, OpSpec, Undo
from ._broker import Broker
from ._call import Call
from ._errors import EffectMissing, as_op_error
from ._lookup import OWN_OPS

_MOST_EFFECTS = 1_000


@frozen
class PlannedStep:
    """One effect that would take something back.

    Args:
        effect: which one it takes back.
        op: the op that does it.
        params: its parameters.
        text: what it does, for the person who decides.
        key: its idempotency key: nothing is taken back twice.
        state: ``None`` before it was tried; ``done`` or ``unknown`` if it was.
    """

    effect: str
    op: str
    params: Mapping[str, Any] = field(repr=False)
    text: str
    key: str
    state: str | None = None


@frozen
class UndoPlan:
    """What would be done to take an effect back, and what can't be. Nothing has been done.

    Args:
        effect: which one.
        op: what it was.
        steps: in the order in which they are done.
        remains: what can't be taken back, one sentence each.
    """

    effect: str
    op: str
    steps: tuple[PlannedStep, ...] = ()
    remains: tuple[str, ...] = ()

    @property
    def open(self) -> tuple[PlannedStep, ...]:
        """The steps that were not done yet."""
        return tuple(step for step in self.steps if step.state != "done")


@frozen
class UndoneStep:
    """How one step went.

    Args:
        step: the step.
        result: what its op answered.
        error: why there is no result; the steps after it were not tried.
    """

    step: PlannedStep
    result: Any = None
    error: SidebandError | None = None


async def plan_undo(broker: Broker, ledger: Ledger, call: Call, effect: str) -> UndoPlan:
    """Ask the op how its effect can be taken back; of a tool call, the ops of all effects that it had.

    Raises:
        EffectMissing: there is no such effect.
        OpError: the op's plugin can't be used, or its plan failed.
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
            key = f"undo:{one.effect}:{number}"
            known = await broker.recall(key)
            state = known[0] if known else None
            steps.append(PlannedStep(one.effect, step.op, step.params, clean(step.text), key, state))
    return UndoPlan(effect, record.op, tuple(steps), tuple(map(clean, remains)))


async def carry_out(broker: Broker, call: Call, plan: UndoPlan) -> Sequence[UndoneStep]:
    """Do the steps that were not done yet, in order, until one fails."""
    gone: list[UndoneStep] = []
    for step in plan.open:
        try:
            result = await broker.dispatch(call, step.op, step.params, key=step.key)
        except SidebandError as error:
            gone.append(UndoneStep(step, error=error))
            break
        gone.append(UndoneStep(step, result))
    return gone


async def _effects_of(ledger: Ledger, record: EffectRecord) -> Sequence[EffectRecord]:
    """What a tool call did, newest first: that is the order in which it is taken back."""
    origin = record.origin
    found = await query(ledger.folder, session=origin.session, run=origin.run, step=origin.step, limit=_MOST_EFFECTS)
    return [one for one in found if one.op not in OWN_OPS and one.origin.step == origin.step]


async def _plan(broker: Broker, call: Call, record: EffectRecord) -> Undo:
    if record.status == "denied":
        return Undo(remains=("it was refused: nothing happened",))
    bound = await broker.ops.get(record.op)
    if bound.spec.undo is None:
        return Undo(remains=(_no_way_back(bound.spec, bound.plugin.record.name),))
    try:
        return await broker.ask(bound.spec.undo, bound, call, record)
    except Exception as raised:  # noqa: BLE001  whatever a plan raises becomes one typed error
        error = as_op_error(raised, op=record.op, plugin=bound.plugin.record.name)
        broker.redactor.error(error)
        raise error from None


def _no_way_back(spec: OpSpec, plugin: str) -> str:
    if spec.level <= Level.MONITORED:
        return f"there is nothing to take back: {spec.name} changes nothing"
    return f"the plugin `{plugin}` knows no way to take {spec.name} back"
