"""The guard ``tides``: stations that are closed cannot be requested."""

from __future__ import annotations

from sideband import hookimpl
from sideband.hooks import Deny, OpCall
from sideband.plugins import PluginContext

from .config import Config

__all__ = ["Config", "sideband_guards"]


class ClosedStations:
    """Denies requests for closed stations."""

    @hookimpl
    def op_call(self, event: OpCall, ctx: PluginContext) -> Deny | None:
        """Deny a request for a closed station."""
        station = event.params.get("station") if event.op == "tides.high_waters" else None
        return Deny(f"the station {station} is closed") if station in ctx.config.closed else None


def sideband_guards() -> list[type[ClosedStations]]:
    """Register the guard."""
    return [ClosedStations]
