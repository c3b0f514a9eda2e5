"""The entry point of the group `sideband.v1.op`: registers the family `plist`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._config import Config
from ._errors import ERRORS
from ._ops import Readers, dump, parse

__all__ = ["Config", "lifespan", "sideband_ops"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Readers]:
    """Hold the threads for the lifetime of the host."""
    yield Readers(ctx.config)


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="plist", ops=(parse, dump), doc="Property lists, XML and binary, as plain data.", errors=ERRORS
    )
