"""Combine the guards' decisions about an effect, and ask for approval if a guard requires it."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from ..approvals import ApprovalNeeded, Approvals, Approver, StoredApproval
from ..hooks import Decision, OpCall, Verdict
from ..ops import OpDenied
from ._dispatch import Dispatch
from ._gate import exactly
from ._values import secret_fields

ASKED_BEFORE = "A guard asked about this before the run continued. May it happen?"
"""The question about an effect of a run that continues after a guard had asked."""


async def enforce(
    approvals: Approvals, approver: Approver | None, dispatch: Dispatch, event: OpCall, decision: Decision
) -> None:
    """Enforce the decision of the guards. If they require an approval, ask for it and note the answer.

    What a parked run waited for needs its approval even if they allow it now: a guard that counts may begin again.

    Args:
        approvals: asks each question once.
        approver: answers it; ``None`` without an approver.
        dispatch: the dispatch with its final parameters.
        event: the same as guards see it.
        decision: the decision of the guards.

    Raises:
        ApprovalNeeded: if there is no approver.
        OpDenied: if it was denied or not approved.
    """
    if decision.verdict is Verdict.DENY:
        raise OpDenied(event.op, decision.reason, hint=decision.hint, plugin=decision.plugin)
    asks = decision.verdict is Verdict.ASK
    if not asks and not approvals.is_continued(event.origin.run):
        return
    request = approvals.request(
        "effect",
        event.op,
        decision.question or ASKED_BEFORE,
        {**event.params, **dict.fromkeys(secret_fields(dispatch.valid) & event.params.keys(), "…")},
        origin=event.origin,
        exact=[dispatch.valid, dispatch.valid.model_fields_set, event.grant],
        code=dispatch.call.code,
        plugins=[dispatch.plugin],
        grants=[str(one) for one in exactly(dispatch.found, dispatch.valid)] if decision.lasting else (),
        level=event.level,
        risk=risk_of(decision),
    )
    if not asks and not approvals.is_waited_for(request):
        return
    request = evolve(request, preview=await _previewed(event))
    answer = await approvals.decide(request, approver)
    dispatch.decisions.append(answer_as_data(answer))
    if answer is None:
        needed = ApprovalNeeded(request, decision.plugin)
        if dispatch.call.attempt is not None:
            dispatch.call.attempt.wait_for(needed)
        raise needed
    if not answer.allowed:
        raise OpDenied(event.op, refusal(answer), plugin=decision.plugin)


async def _previewed(event: OpCall) -> str | None:
    """Return the op's preview of its effect, for the approver, or ``None`` if the op has no preview."""
    if event.preview is None:
        return None
    try:
        return await event.preview(event.params)
    except Exception as error:  # noqa: BLE001  a failing preview must not decide about the effect
        return f"preview failed: {type(error).__name__}"


def risk_of(decision: Decision) -> str:
    """Return what guards noted about an effect or a tool call. Further lines of a note are indented."""
    return "\n".join(f"{note.plugin}: {note.text}".replace("\n", "\n  ") for note in decision.notes)


def refusal(answer: StoredApproval) -> str:
    """Return why an effect or a tool call is denied, after the answer of an approver."""
    reason = f" ({answer.reason})" if answer.reason else ""
    return f"it was not approved{reason}: {answer.request.question}"


def decisions_as_data(decision: Decision) -> list[dict[str, Any]]:
    """Return the answers of all plugins as ledger data, in order."""
    return [
        {"plugin": one.plugin, "said": one.answer, **({"note": one.text} if one.text else {})} for one in decision.said
    ]


def answer_as_data(answer: StoredApproval | None) -> dict[str, Any]:
    """Return the answer to a request as ledger data; ``None`` if there was no approver."""
    if answer is None:
        return {"by": "host", "said": "refuse", "note": "no approver is available"}
    return answer.as_decision()
