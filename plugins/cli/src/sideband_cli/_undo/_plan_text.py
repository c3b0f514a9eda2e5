"""An undo plan and its result, as text and as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sideband.rendering import render

from .._terminal._effect_text import effect_data
from .._terminal._tables import paragraph

if TYPE_CHECKING:
    from sideband import EffectReport
    from sideband.broker import PlannedStep, UndoneStep, UndoPlan

_STATES = {
    None: "",
    "done": " (already done)",
    "unknown": " (started before, outcome unknown: it will not be repeated)",
}


def describe_plan(plan: UndoPlan, width: int | None = None) -> str:
    """Describe the steps of a plan in order, and what cannot be undone, in lines of at most ``width`` columns."""
    lines = [f"to undo {plan.effect}, {plan.op}:"] if plan.steps else [f"{plan.effect}, {plan.op}:"]
    for number, step in enumerate(plan.steps, start=1):
        lines.append(
            paragraph(
                f"{render(step.text)} ({step.op}){_STATES.get(step.state, '')}", f"  {number}. ", "     ", width=width
            )
        )
    return "\n".join([*lines, *_remains(plan, width)])


def _remains(plan: UndoPlan, width: int | None = None) -> Iterable[str]:
    if plan.remains:
        yield "cannot be undone:"
    for sentence in plan.remains:
        yield paragraph(render(sentence), "  - ", "    ", width=width)


def describe_result(plan: UndoPlan, results: Sequence[UndoneStep], effects: Sequence[EffectReport]) -> str:
    """Describe the result of each step, with the id of its effect, by which it can be inspected or undone in turn."""
    ids = {id(one.step): effect.id for one, effect in zip(results, _own(results, effects), strict=False)}
    lines = [
        paragraph(f"{_status(one)}: {one.step.text} ({one.step.op}, {ids.get(id(one.step), 'no effect')})", "", "  ")
        for one in results
    ]
    remaining = len(plan.open) - len(results)
    if remaining:
        lines.append(f"not attempted: {remaining} more")
    return "\n".join([*lines, *_remains(plan)])


def describe_chain(effect: str, chain: Sequence[str]) -> str:
    """Describe which effects undid an effect, and which one to undo next to reverse that.

    Args:
        effect: the effect.
        chain: the effect that undid it, the one that undid that, and so on.
    """
    if not chain:
        return f"{effect} is already undone"
    by = ", which was undone by ".join(chain)
    state, verb = ("is already undone", "redo") if len(chain) % 2 else ("is in effect again", "undo")
    return f"{effect} {state}: it was undone by {by}\nto {verb} it: sideband undo {chain[-1]}"


def _own(results: Sequence[UndoneStep], effects: Sequence[EffectReport]) -> Sequence[EffectReport]:
    """Return the effects of the steps themselves, without their child effects, which end before them."""
    ops = [one.step.op for one in results]
    own: list[EffectReport] = []
    for effect in effects:
        if len(own) < len(ops) and effect.op == ops[len(own)]:
            own.append(effect)
    return own


def _status(one: UndoneStep) -> str:
    return "failed" if one.error is not None else "done"


def undo_data(
    plan: UndoPlan, results: Sequence[UndoneStep] = (), effects: Iterable[EffectReport] = ()
) -> dict[str, Any]:
    """Return the plan and its result as data."""
    ended = {one.step.key: one for one in results}
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
