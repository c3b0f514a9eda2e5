"""The entry point of the group `sideband.v1.op`: registers the family `blobs`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.blobs import BlobScope
from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._config import Config
from ._errors import ERRORS
from ._ops import delete, get, list_, put, stat
from ._state import Blobs

__all__ = ["Config", "lifespan", "sideband_ops"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Blobs]:
    """Hold the shared state for the lifetime of the host."""
    yield Blobs(ctx.config)


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="blobs",
        ops=(put, get, stat, list_, delete),
        scope=BlobScope,
        doc="Content-addressed storage of large data.",
        errors=ERRORS,
    )
