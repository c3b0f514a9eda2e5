"""Combine the guards' decisions about an effect, and ask the approver if a guard requires it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import evolve

from ..hooks import Decision, HookRegistry, OpCall, Validate, Verdict
from ..ops import OpDenied
from ._errors import safe_text

_MAX_SHOWN = 2_000

Approver = Callable[[str, OpCall], Awaitable[bool]]
"""Ask the user a question about an effect, and return whether they approved."""


async def decide(
    hooks: HookRegistry, event: OpCall, approver: Approver | None, validate: Validate
) -> tuple[Decision, list[dict[str, Any]], OpDenied | None]:
    """Ask the guards about ``event``.

    Args:
        hooks: the hooks with the guards. If they have their own approver, it answers instead of ``approver``.
        event: the op call to decide about.
        approver: a function that answers the questions of guards, or ``None`` if no user is available.
        validate: a function that validates parameters replaced by a guard, so that later guards see what will run.

    Returns:
        The decision, all answers as ledger data, and the error if the effect is denied.
    """
    decision = await hooks.decide(event, validate=validate)
    approver = hooks.approver or approver
    if decision.verdict is Verdict.DENY:
        hint = decision.error.hint if decision.error else ""
        denied = OpDenied(event.op, decision.reason, hint=hint, plugin=decision.plugin)
        return decision, decisions_as_data(decision), denied
    if decision.verdict is not Verdict.ASK:
        return decision, decisions_as_data(decision), None
    final = event if decision.arguments is None else event.with_arguments(decision.arguments)
    if approver is not None:
        final = evolve(final, previewed=await _previewed(final))
    approved, problem = await approval(approver, decision.question, final)
    answers = [*decisions_as_data(decision), approval_as_data(approved=approved, shown=final.previewed)]
    if approved:
        return decision, answers, None
    reason = f"it was not approved{problem}: {decision.question}"
    return decision, answers, OpDenied(event.op, reason, plugin=decision.plugin)


async def _previewed(event: OpCall) -> str | None:
    """Return the op's preview of its effect, for the approver, or ``None`` if the op has no preview."""
    if event.preview is None:
        return None
    try:
        return await event.preview(event.params)
    except Exception as error:  # noqa: BLE001  a failing preview must not decide about the effect
        return f"preview failed: {type(error).__name__}"


def decisions_as_data(decision: Decision) -> list[dict[str, Any]]:
    """Return the answers of all plugins as ledger data, in order."""
    return [
        {"plugin": one.plugin, "said": one.answer, **({"note": one.text} if one.text else {})} for one in decision.said
    ]


async def approval(
    approver: Callable[[str, Any], Awaitable[bool]] | None, question: str, event: Any
) -> tuple[bool | None, str]:
    """Ask an approver. Only ``True`` approves: an answer such as ``"no"`` is true as well.

    Returns:
        The answer, or ``None`` without an approver; and why there is no valid answer, to be appended to a sentence.
    """
    if approver is None:
        return None, " (no approver is available: use a terminal, or pass --yes)"
    try:
        answer: object = await approver(question, event)
    except Exception as error:  # noqa: BLE001  a program's approver may raise anything
        return False, f" (the approver failed: {type(error).__name__}: {safe_text(error)})"
    if isinstance(answer, bool):
        return answer, ""
    return False, f" (the approver returned a {type(answer).__name__}, but must return a bool)"


def approval_as_data(*, approved: bool | None, shown: str | None = None) -> dict[str, Any]:
    """Return the answer to a question as ledger data.

    Args:
        approved: the answer, or ``None`` if no approver was available.
        shown: the preview that the user saw.
    """
    if approved is None:
        return {"by": "nobody", "said": "refuse", "note": "no approver is available"}
    note = {"note": f"shown: {shown[:_MAX_SHOWN]}"} if shown else {}
    return {"by": "approver", "said": "approve" if approved else "refuse", **note}
