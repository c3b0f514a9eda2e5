"""The op family `llm`: registration, and configuration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sideband.ops import OpFamily
from sideband.plugins import PluginContext
from sideband.providers import Prices

from ._catalog import ModelCatalog
from ._ops import OPS
from ._scope import LlmScope

__all__ = ["Config", "lifespan", "sideband_ops"]

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


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[ModelCatalog]:
    """Keep what is known about models for as long as the host lives."""
    config: Config = ctx.config
    yield ModelCatalog(config.aliases, config.prices)


def sideband_ops() -> OpFamily:
    """The ops of this family."""
    return OpFamily(
        name="llm",
        ops=OPS,
        scope=LlmScope,
        sdk=Path(__file__).with_name("_sdk.py"),
        doc="Asks models, and lists them.",
    )
