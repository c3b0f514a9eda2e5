"""The entry point of the group `sideband.v1.op`: lets skills and grants pass on the trace context of effects."""

from __future__ import annotations

from attrs import frozen
from pydantic import BaseModel, ConfigDict, Field
from sideband.ops import Level, OpContext, OpFamily, Scope, op

__all__ = ["ParentParams", "TraceScope", "sideband_ops"]


@frozen
class TraceScope(Scope, family="trace"):
    """The fields of a ``trace`` capability, which lets the trace context of an effect be passed on.

    Args:
        host: the host that receives it, in lower-case ASCII.
        port: its port.
        scheme: ``http`` or ``https``, or another scheme.
    """

    host: str | None = None
    port: str | None = None
    scheme: str | None = None


class ParentParams(BaseModel):
    """The receiver of a trace context."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field(min_length=1, max_length=255, description="The host that gets it, as in the capability.")


def _scope(params: ParentParams) -> TraceScope:
    return TraceScope(host=params.host.lower())


@op("trace.parent", requires="trace", scope=_scope, level=Level.SAFE, record=["host"], egress=False)
async def parent(params: ParentParams, ctx: OpContext) -> str | None:  # noqa: ARG001  only its scope depends on them
    """Return the trace context of this effect as `traceparent`, for a message that is not an HTTP request.

    `http` sends it by itself where the grant has a capability of `trace`. It is `None` if no telemetry is sent.
    """
    return await ctx.trace_parent()


def sideband_ops() -> OpFamily:
    """Return the family `trace`."""
    return OpFamily(name="trace", ops=(parent,), scope=TraceScope, doc="The trace context of effects.")
