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
        default_factory=dict, description="Short names of models, each for a provider:model."
    )
    prices: dict[_FullName, Prices] = Field(
        default_factory=dict,
        description="US dollars for a million tokens of a provider:model, where its provider knows none or others.",
    )
