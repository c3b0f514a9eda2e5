"""The configuration, ``[plugins.tides]``, which all plugins of this package share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """The service, its stations, and those that may not be used."""

    model_config = ConfigDict(extra="forbid")

    url: str = "https://tides.example"
    stations: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
