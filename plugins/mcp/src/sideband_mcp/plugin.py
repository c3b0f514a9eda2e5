"""The entry points `mcp`: the op family, the servers as sources of tools, and what a user writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from . import _tools as servers
from . import _user_input as user_input
from ._catalog import Pins
from ._config import Config
from ._errors import ERRORS
from ._oauth._ops import authorize, login, logout
from ._ops import accept, add, answer, call, changes, install, list_, prompt, prompts, read, resources
from ._scope import McpScope

if TYPE_CHECKING:
    from ._connections._servers import Servers

__all__ = ["Config", "lifespan", "servers", "sideband_ops", "user_input"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Servers]:
    """Hold the connections for the lifetime of the host."""
    from ._connections._servers import Servers  # noqa: PLC0415  the SDK is slow to import

    async with anyio.create_task_group() as tasks:
        servers = Servers(ctx.config, tasks, Pins(ctx.store), ctx)
        try:
            yield servers
        finally:
            servers.close()
            with anyio.move_on_after(ctx.config.close_seconds, shield=True):
                await servers.closed()
            tasks.cancel_scope.cancel()


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="mcp",
        ops=(
            add,
            list_,
            install,
            accept,
            changes,
            call,
            answer,
            resources,
            read,
            prompts,
            prompt,
            authorize,
            login,
            logout,
        ),
        scope=McpScope,
        doc="Servers of the Model Context Protocol.",
        errors=ERRORS,
    )
