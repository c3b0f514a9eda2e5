"""Registration of the hook ``tool_selection`` and of the tool: one plugin with one table of settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.hooks import ToolSelection, hookimpl
from sideband.plugins import AgentContext, PluginContext
from sideband.tools import Tool

from ._config import Config
from ._expand_tool import tool_expand_tools
from ._selector import Selector

__all__ = ["Config", "lifespan", "sideband_tools", "tool_selection"]


def sideband_tools() -> list[Tool]:
    """Return the tool with which models request other tools."""
    return [tool_expand_tools]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Selector]:
    """Yield what selects the tools of all sessions."""
    selector = Selector(ctx.config)
    try:
        yield selector
    finally:
        selector.close()


@hookimpl
async def tool_selection(event: ToolSelection, ctx: AgentContext) -> list[str]:
    """Select the tools of a request."""
    selector: Selector = ctx.state
    return await selector.select(event, ctx)
