"""A plan for taking an effect back, and what came of it, as text and as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .._terminal._effect_text import effect_data
from .._terminal._tables import paragraph

if TYPE_CHECKING:
    from sideband import EffectReport
    from sideband.broker import PlannedStep, UndoneStep, UndoPlan

_STATES = {
    None: "",
    "done": " (done already)",
    "unknown": " (was begun once, and nobody knows whether it happened: it will not be done again)",
}


def describe_plan(plan: UndoPlan) -> str:
    """What would be done, in order, and what can't be taken back."""
    lines = [f"to take back {plan.effect}, {plan.op}:"] if plan.steps else [f"{plan.effect}, {plan.op}:"]
    for number, step in enumerate(plan.steps, start=1):
        lines.append(paragraph(f"{step.text} ({step.op}){_STATES.get(step.state, '')}", f"  {number}. ", "     "))
    return "\n".join([*lines, *_remains(plan)])


def _remains(plan: UndoPlan) -> Iterable[str]:
    if plan.remains:
        yield "what can't be taken back:"
    for sentence in plan.remains:
        yield paragraph(sentence, "  - ", "    ")


def describe_gone(plan: UndoPlan, gone: Sequence[UndoneStep], effects: Sequence[EffectReport]) -> str:
    """How each step went, and by which effect it can be looked up, or be taken back itself."""
    ids = {id(one.step): effect.id for one, effect in zip(gone, _own(gone, effects), strict=False)}
    lines = [
        paragraph(f"{_how(one)}: {one.step.text} ({one.step.op}, {ids.get(id(one.step), 'no effect')})", "", "  ")
        for one in gone
    ]
    left = len(plan.open) - len(gone)
    if left:
        lines.append(f"not tried: {left} more")
    return "\n".join([*lines, *_remains(plan)])


def describe_chain(effect: str, chain: Sequence[str]) -> str:
    """What has become of an effect that was taken back, and which one to take back to change that."""
    if not chain:
        return f"{effect} was taken back already"
    by = ", and that by ".join(chain)
    again = "to have it again" if len(chain) % 2 else "to take it back again"
    return f"{effect} was taken back already by {by}\n{again}: sideband undo {chain[-1]}"


def _own(gone: Sequence[UndoneStep], effects: Sequence[EffectReport]) -> Sequence[EffectReport]:
    """The effects that are the steps themselves, not what those did in turn: each ends after its children."""
    ops = [one.step.op for one in gone]
    own: list[EffectReport] = []
    for effect in effects:
        if len(own) < len(ops) and effect.op == ops[len(own)]:
            own.append(effect)
    return own


def _how(one: UndoneStep) -> str:
    return "failed" if one.error is not None else "done"


def undo_data(plan: UndoPlan, gone: Sequence[UndoneStep] = (), effects: Iterable[EffectReport] = ()) -> dict[str, Any]:
    """The plan, and what came of it, as data."""
    ended = {one.step.key: one for one in gone}
    return {
        "effect": plan.effect,
        "op": plan.op,
        "steps": [_step_data(step, ended.get(step.key)) for step in plan.steps],
        "remains": list(plan.remains),
        "effects": [effect_data(effect) for effect in effects],
    }


def _step_data(step: PlannedStep, ended: UndoneStep | None) -> dict[str, Any]:
    state = step.state
    if ended is not None:
        state = "done" if ended.error is None else "failed"
    return {
        "effect": step.effect,
        "op": step.op,
        "text": step.text,
        "key": step.key,
        "state": state,
        "error": ended.error.as_dict() if ended is not None and ended.error is not None else None,
    }
