"""Finds out what became of a model call whose end was not seen."""

from __future__ import annotations

from sideband.ops import OpContext, Reconciled, Recorded


async def reconcile_generate(recorded: Recorded, ctx: OpContext) -> Reconciled:  # noqa: ARG001  the signature of `reconcile`
    """A lost model call changed nothing but the bill, so it may be repeated."""
    return Reconciled(happened=False)
