"""From what the guards said of an effect to whether it may happen; where they ask, a person answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..hooks import Decision, HookRegistry, OpCall, Validate, Verdict
from ..ops import OpDenied

__all__ = ["Approver", "decide", "trail"]

Approver = Callable[[str, OpCall], Awaitable[bool]]
"""Puts a question about an effect to a person; whether the person said yes."""


async def decide(
    hooks: HookRegistry, event: OpCall, approver: Approver | None, validate: Validate
) -> tuple[Decision, OpDenied | None]:
    """Ask the guards about ``event``.

    Args:
        approver: who answers where a guard asks; ``None`` if nobody can.
        validate: checks parameters that a guard puts in place of the given ones, so that the others see what will run.

    Returns:
        What they said, and the refusal if it may not happen.
    """
    decision = await hooks.decide(event, validate=validate)
    if decision.verdict is Verdict.DENY:
        return decision, OpDenied(event.op, decision.reason, plugin=decision.plugin)
    if decision.verdict is Verdict.ASK and not await _approved(decision, event, approver):
        reason = f"nobody approved it: {decision.question}"
        return decision, OpDenied(event.op, reason, plugin=decision.plugin, hint="approve it when you are asked")
    return decision, None


async def _approved(decision: Decision, event: OpCall, approver: Approver | None) -> bool:
    final = event if decision.arguments is None else event.with_arguments(decision.arguments)
    return approver is not None and await approver(decision.question, final)


def trail(decision: Decision) -> list[dict[str, Any]]:
    """What the ledger keeps of a decision."""
    said: list[dict[str, Any]] = [
        {"plugin": note.plugin, "said": "allow", "note": note.text} for note in decision.notes
    ]
    said += [{"plugin": plugin, "said": "replace"} for plugin in decision.replaced_by]
    said += [{"plugin": note.plugin, "said": "ask", "note": note.text} for note in decision.questions]
    if decision.verdict is Verdict.DENY:
        said.append({"plugin": decision.plugin, "said": "deny", "note": decision.reason})
    return said
