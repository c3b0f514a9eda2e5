"""The entry point of the group `sideband.v1.op`: registers the family `files`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._config import Config
from ._errors import ERRORS
from ._ops import copy, delete, find, lines, list_, make_folder, move, read, restore, search, stat, write
from ._scope import FilesScope
from ._state import Files

__all__ = ["Config", "lifespan", "sideband_ops"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Files]:
    """Hold the shared state for the lifetime of the host. Each op opens and closes its own files."""
    yield Files(ctx.config)


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="files",
        ops=(read, lines, write, list_, find, search, stat, copy, move, delete, make_folder, restore),
        scope=FilesScope,
        sdk=Path(__file__).with_name("_sdk.py"),
        doc="Access to granted files, with atomic writes and undo.",
        errors=ERRORS,
    )
