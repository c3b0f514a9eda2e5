"""From what the guards said of an effect to whether it may happen; where they ask, a person answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import evolve

from ..hooks import Decision, HookRegistry, OpCall, Validate, Verdict
from ..ops import OpDenied

_LONGEST_SHOWN = 2_000

Approver = Callable[[str, OpCall], Awaitable[bool]]
"""Puts a question about an effect to a person; whether the person said yes."""


async def decide(
    hooks: HookRegistry, event: OpCall, approver: Approver | None, validate: Validate
) -> tuple[Decision, list[dict[str, Any]], OpDenied | None]:
    """Ask the guards about ``event``.

    Args:
        approver: who answers where a guard asks; ``None`` if nobody can.
        validate: checks parameters that a guard puts in place of the given ones, so that the others see what will run.

    Returns:
        What they decided, all that was said as the ledger keeps it, and the refusal if it may not happen.
    """
    decision = await hooks.decide(event, validate=validate)
    if decision.verdict is Verdict.DENY:
        return decision, decisions_as_data(decision), OpDenied(event.op, decision.reason, plugin=decision.plugin)
    if decision.verdict is not Verdict.ASK:
        return decision, decisions_as_data(decision), None
    final = event if decision.arguments is None else event.with_arguments(decision.arguments)
    if approver is not None:
        final = evolve(final, previewed=await _previewed(final))
    approved = None if approver is None else await approver(decision.question, final)
    said = [*decisions_as_data(decision), approval_as_data(approved=approved, shown=final.previewed)]
    if approved:
        return decision, said, None
    reason = f"it was {disapproval(decision.question, asked=approved is not None)}"
    return decision, said, OpDenied(event.op, reason, plugin=decision.plugin)


async def _previewed(event: OpCall) -> str | None:
    """What the op says would happen: nobody can agree to what he does not know."""
    if event.preview is None:
        return None
    try:
        return await event.preview(event.params)
    except Exception as error:  # noqa: BLE001  a plugin that can't tell must not decide by that
        return f"what would happen can't be told: {type(error).__name__}"


def decisions_as_data(decision: Decision) -> list[dict[str, Any]]:
    """What the ledger keeps of what plugins said, in the order in which they said it."""
    return [
        {"plugin": one.plugin, "said": one.answer, **({"note": one.text} if one.text else {})} for one in decision.said
    ]


def disapproval(question: str, *, asked: bool) -> str:
    """Why something may not happen that a guard asked about; if there was nobody to ask, what it takes to be asked."""
    nobody = "" if asked else " (nobody can be asked: that takes a terminal, or --yes)"
    return f"not approved{nobody}: {question}"


def approval_as_data(*, approved: bool | None, shown: str | None = None) -> dict[str, Any]:
    """What the ledger keeps of the answer to a question.

    Args:
        approved: the answer; ``None``: there was nobody to ask.
        shown: what the person was told would happen.
    """
    if approved is None:
        return {"by": "nobody", "said": "refuse", "note": "nobody can be asked"}
    told = {"note": f"shown: {shown[:_LONGEST_SHOWN]}"} if shown else {}
    return {"by": "approver", "said": "approve" if approved else "refuse", **told}
