"""The op that starts the service of the demo."""

from __future__ import annotations

from sideband.ops import Level, OpContext, op

from ._models import DemoAddress, ServiceParams
from ._state import CREDENTIAL


@op("demo.service", requires="demo", level=Level.MONITORED)
async def service(params: ServiceParams, ctx: OpContext) -> DemoAddress:  # noqa: ARG001  it takes none
    """Start a small HTTP service on loopback, unless it runs, and store a credential for it."""
    return DemoAddress(url=await ctx.state.url(), credential=CREDENTIAL)
