"""The op family ``tides``."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

import attrs
from pydantic import BaseModel, ConfigDict, Field
from sideband import Level, OpContext, OpFamily, Scope, op
from sideband.ops import OpFailed

from .config import Config

__all__ = ["Config", "HighWaters", "StationUnknown", "sideband_ops"]


class HighWatersParams(BaseModel):
    """The parameters of ``tides.high_waters``."""

    model_config = ConfigDict(extra="forbid")

    station: str = Field(min_length=1, max_length=40, description="The name of a station, such as `dover`.")
    count: int = Field(default=2, ge=1, le=10, description="How many high waters.")


class HighWaters(BaseModel):
    """The next high waters at a station: times in ISO 8601 format."""

    station: str
    times: list[str]


@attrs.frozen
class TidesScope(Scope, family="tides"):
    """The stations that a grant allows."""

    station: str | None = None


class StationUnknown(OpFailed):
    """The service does not know the station."""

    code = "tides.station"


@op(
    "tides.high_waters",
    requires="tides",
    scope=lambda params: TidesScope(station=params.station),
    level=Level.MONITORED,
    record=["station"],
    egress=False,
)
async def high_waters(params: HighWatersParams, ctx: OpContext) -> HighWaters:
    """Return the next high waters at a station."""
    url = f"{ctx.config.url}/{quote(params.station, safe='')}"
    answer = await ctx.dispatch("http.get", {"url": url}, rights="own")
    if answer["status"] != 200:
        raise StationUnknown(f"the service does not know the station {params.station!r}", hint="check its name")
    return HighWaters(station=params.station, times=answer["json"]["times"][: params.count])


def sideband_ops(config: Config) -> OpFamily:
    """Register the family."""
    parts = urlsplit(config.url)
    port = f",port={parts.port}" if parts.port else ""
    right = f"http:host={parts.hostname},method=GET,scheme={parts.scheme}{port}"
    return OpFamily("tides", (high_waters,), scope=TidesScope, uses=[right], doc="Tides of the stations of a service.")
