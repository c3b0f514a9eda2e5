"""The entry point of the group `sideband.v1.op`: registers the family `crypto`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._config import Config
from ._errors import ERRORS
from ._ops import OPS
from ._scope import CryptoScope
from ._state import Work

__all__ = ["Config", "lifespan", "sideband_ops"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Work]:
    """Hold the threads for the lifetime of the host. On exit, wait for abandoned work."""
    async with anyio.create_task_group() as tasks:
        yield Work(ctx.config, tasks)


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="crypto",
        ops=OPS,
        scope=CryptoScope,
        doc="Digests, signatures and encryption, with keys that skills can use without seeing them.",
        errors=ERRORS,
    )
