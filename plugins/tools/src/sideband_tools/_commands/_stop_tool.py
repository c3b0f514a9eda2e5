"""The tool `command_stop`: end a command in the background."""

from __future__ import annotations

from sideband.ops import Level
from sideband.tools import ToolContext, tool

from .._places import Places
from ._models import CommandStopParams
from ._texts import state_of


@tool("command_stop", level=Level.MONITORED, category="command")
async def command_stop(params: CommandStopParams, ctx: ToolContext) -> str:
    """End a command in the background, with all processes that it has started. Its output can still be read."""
    found = await ctx.dispatch("shell.stop", params.model_dump(), **Places.of(ctx).shell())
    return f"[{state_of(found)}]"
