"""The entry point of the group `sideband.v1.op`: registers the family `shell`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._background import BackgroundPrograms
from ._config import Config
from ._errors import ERRORS
from ._ops import output, run, start, stop
from ._scope import ShellScope

__all__ = ["Config", "lifespan", "sideband_ops"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[BackgroundPrograms]:
    """Hold the programs in the background, which end with the host."""
    async with anyio.create_task_group() as tasks:
        yield BackgroundPrograms(ctx.config, tasks)
        tasks.cancel_scope.cancel()


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="shell",
        ops=(run, start, output, stop),
        scope=ShellScope,
        sdk=Path(__file__).with_name("_sdk.py"),
        doc="Runs programs in the isolation of skills, without a shell.",
        errors=ERRORS,
    )
