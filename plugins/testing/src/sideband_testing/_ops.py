"""The ops of the families that the kit adds to hosts of tests."""

from __future__ import annotations

from sideband import Level, OpContext, op
from sideband.ops import OpParams


class SecretNamesParams(OpParams):
    """No parameters."""


@op("secrets.list", level=Level.SAFE)
async def list_secret_names(params: SecretNamesParams, ctx: OpContext) -> list[str]:  # noqa: ARG001  none are stored
    """Return no names: the secrets of a test are not stored. A family has at least one op."""
    return []


class SentContentParams(OpParams):
    """Content for an origin; ``None`` for a place that must never contain secrets."""

    content: str
    audience: str | None = None


@op("conformance.send", level=Level.RESTRICTED)
async def send(params: SentContentParams, ctx: OpContext) -> None:
    """Check whether content may be sent. Nothing is sent."""
    ctx.check_egress(params.audience, {"content": params.content})
