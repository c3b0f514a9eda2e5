"""The tool `write`: create a file, or replace its content."""

from __future__ import annotations

from sideband.ops import Level
from sideband.tools import ToolContext, tool

from .._places import Places
from ._changing import write_known
from ._models import WriteParams


@tool("write", level=Level.CONTROLLED, resume="replay")
async def write(params: WriteParams, ctx: ToolContext) -> str:
    """Create a file, or replace the whole content of one that you have read. Folders are created as needed.

    To change a part of a file, use `edit`.
    """
    places = Places.of(ctx)
    path = places.changed_path(params.path)
    written = await write_known(ctx, places, path, params.content)
    lines = len(params.content.splitlines())
    what = "replaced" if written["replaced"] else "created"
    return f"{what} {places.shown(path)} ({lines:,} {'line' if lines == 1 else 'lines'}, {written['size']:,} bytes)"
