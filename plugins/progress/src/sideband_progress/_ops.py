"""The op `progress.report`."""

from __future__ import annotations

from sideband.ops import Level, OpContext, op

from ._models import ProgressReportParams


@op("progress.report", level=Level.SAFE, fire_and_forget=True, record=["current", "total"], egress=False)
async def report(params: ProgressReportParams, ctx: OpContext) -> None:
    """Report the progress of the call. Fire-and-forget; needs no capability."""
    await ctx.progress(current=params.current, total=params.total, message=params.text())
