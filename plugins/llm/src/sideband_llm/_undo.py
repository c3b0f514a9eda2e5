"""Reconciliation of model calls whose outcome is unknown."""

from __future__ import annotations

from sideband.ops import OpContext, Reconciled, Recorded


async def reconcile_generate(recorded: Recorded, ctx: OpContext) -> Reconciled:  # noqa: ARG001  the signature of `reconcile`
    """Report that a lost model call may be repeated: it has no side effect except its cost."""
    return Reconciled(happened=False)
