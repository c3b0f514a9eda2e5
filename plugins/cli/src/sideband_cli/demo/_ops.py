"""The op that starts the demo service."""

from __future__ import annotations

from sideband.ops import Level, OpContext, op

from ._models import DemoAddress, ServiceParams
from ._state import CREDENTIAL


@op("demo.service", requires="demo", level=Level.MONITORED, egress=False)
async def service(params: ServiceParams, ctx: OpContext) -> DemoAddress:  # noqa: ARG001  the signature of ops
    """Start a small HTTP service on loopback, unless it is running, and store a credential for it."""
    return DemoAddress(url=await ctx.state.url(), credential=CREDENTIAL)
