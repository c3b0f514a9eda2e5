"""The hook: it adds the current time to each model call, without storing it in the session."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, field_validator
from sideband import hookimpl
from sideband.hooks import Ephemeral
from sideband.plugins import PluginContext

__all__ = ["Config", "ephemeral"]


class Config(BaseModel):
    """The table `[plugins.{{ cookiecutter.__entry }}]`."""

    model_config = ConfigDict(extra="forbid")

    zone: str = "UTC"

    @field_validator("zone")
    @classmethod
    def _is_known(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (LookupError, OSError, ValueError):
            raise ValueError(f"unknown time zone {zone!r}, write it as Europe/Vienna") from None
        return zone


@hookimpl
def ephemeral(event: Ephemeral, ctx: PluginContext) -> list[dict[str, Any]]:  # noqa: ARG001
    """Return the message that this model call gets in addition."""
    now = datetime.now(ZoneInfo(ctx.config.zone))
    return [{"role": "user", "content": f"The current time is {now:%A, %Y-%m-%d %H:%M} ({ctx.config.zone})."}]
