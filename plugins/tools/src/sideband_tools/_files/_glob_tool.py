"""The tool `glob`: find files by their names."""

from __future__ import annotations

from sideband.ops import Level
from sideband.tools import ToolContext, tool

from .._places import Places
from ._entries import entry_line
from ._models import GlobParams

_MOST_NAMES = 500


@tool("glob", level=Level.MONITORED, read_only=True, resume="replay")
async def glob(params: GlobParams, ctx: ToolContext) -> str:
    """Find files and folders whose paths match a pattern, below a folder. Links are not followed."""
    places = Places.of(ctx)
    path = places.path(params.path)
    request = {"pattern": params.pattern, "path": path, "hidden": params.hidden, "limit": _MOST_NAMES}
    found = await ctx.dispatch("files.find", request, **places.files("read"))
    if not found["entries"]:
        return f"[nothing in {places.shown(path)} matches {params.pattern}]"
    more = ["[there are more: use a narrower pattern]"] if found["truncated"] else []
    return "\n".join([*map(entry_line, found["entries"]), *more])
