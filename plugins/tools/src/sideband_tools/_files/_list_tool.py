"""The tool `list`: list the names in a folder."""

from __future__ import annotations

from sideband.ops import Level
from sideband.rendering import render
from sideband.tools import ToolContext, tool

from .._places import Places
from ._entries import entry_line
from ._models import ListParams

_MOST_NAMES = 500


@tool("list", level=Level.MONITORED, read_only=True, resume="replay")
async def list_(params: ListParams, ctx: ToolContext) -> str:
    """List the files and folders in a folder, sorted by name, with their sizes."""
    places = Places.of(ctx)
    path = places.path(params.path)
    request = {"path": path, "after": params.after, "hidden": params.hidden, "limit": _MOST_NAMES}
    found = await ctx.dispatch("files.list", request, **places.files("read"))
    lines = [entry_line(one) for one in found["entries"]]
    notes = []
    if found["next"] is not None:
        notes.append(f"there are more: continue with `after` = {render(found['next'])}")
    if found["left_out"] and not params.hidden:
        notes.append(f"{found['left_out']:,} hidden names omitted")
    if not lines and not notes:
        return f"[{places.shown(path)} is empty]"
    return "\n".join([*lines, *(f"[{one}]" for one in notes)])
