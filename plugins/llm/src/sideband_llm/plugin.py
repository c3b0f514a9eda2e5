"""Plugin `llm`: registration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._config import Config
from ._errors import ERRORS
from ._ops import OPS
from ._scope import LlmScope
from ._state import ModelCatalog

__all__ = ["Config", "lifespan", "sideband_ops"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[ModelCatalog]:
    """Hold the model cache for the lifetime of the host."""
    config: Config = ctx.config
    yield ModelCatalog(config.aliases, config.prices)


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="llm",
        ops=OPS,
        scope=LlmScope,
        sdk=Path(__file__).with_name("_sdk.py"),
        doc="Calls models and lists them.",
        errors=ERRORS,
    )
