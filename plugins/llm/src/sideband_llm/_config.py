"""The table ``[plugins.llm]``."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sideband.providers import Prices

_Alias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
_FullName = Annotated[str, StringConstraints(pattern=r"^[^:\s]+:\S+$")]


class Config(BaseModel):
    """The table ``[plugins.llm]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    aliases: dict[_Alias, _FullName] = Field(
        default_factory=dict, description="Short names for models, each referring to a provider:model."
    )
    prices: dict[_FullName, Prices] = Field(
        default_factory=dict,
        description="Prices by provider:model, in US dollars per million tokens. They replace those of the provider.",
    )
