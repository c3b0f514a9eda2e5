"""The entry point of the group `sideband.v1.op`: registers the family `sql`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._config import Config
from ._databases import Databases
from ._errors import ERRORS
from ._ops import close, execute, executemany, export, fetch, open_, query, revert, transaction
from ._scope import SqlScope

__all__ = ["Config", "lifespan", "sideband_ops"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Databases]:
    """Hold the open databases for the lifetime of the host. Each op except cursors uses its own connection."""
    databases = Databases(ctx.config)
    try:
        yield databases
    finally:
        await databases.end_all_cursors()


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="sql",
        ops=(query, execute, executemany, transaction, open_, fetch, close, export, revert),
        scope=SqlScope,
        sdk=Path(__file__).parent / "_sdk.py",
        doc="SQLite databases: read-only queries and atomic changes.",
        errors=ERRORS,
    )
