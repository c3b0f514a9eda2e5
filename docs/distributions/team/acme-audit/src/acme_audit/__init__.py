"""A guard that forbids ops that the team has not reviewed."""

from pydantic import BaseModel, ConfigDict
from sideband.hooks import Deny, OpCall, hookimpl


class Config(BaseModel):
    """The table ``[plugins.acme-audit]``."""

    model_config = ConfigDict(extra="forbid")

    forbidden: list[str] = []


class Guard:
    """Denies the forbidden ops."""

    @hookimpl
    async def op_call(self, event: OpCall, ctx: object) -> Deny | None:
        """Deny a forbidden op."""
        if event.op in ctx.config.forbidden:  # type: ignore[attr-defined]  # the context of this plugin
            return Deny(f"{event.op} has not been reviewed")
        return None


def sideband_guards() -> type[Guard]:
    """Register the guard."""
    return Guard
