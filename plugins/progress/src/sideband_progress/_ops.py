"""The op `progress.report`."""

from __future__ import annotations

from sideband.ops import Level, OpContext, op

from ._models import ProgressReportParams


@op("progress.report", level=Level.SAFE, fire_and_forget=True, record=["current", "total"])
async def report(params: ProgressReportParams, ctx: OpContext) -> None:
    """Say how far the call is. Nobody waits for it, and it needs no right."""
    await ctx.progress(current=params.current, total=params.total, message=params.text())
