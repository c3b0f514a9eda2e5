"""The tool `command_output`: read the output of a command in the background."""

from __future__ import annotations

from sideband.ops import Level
from sideband.tools import ToolContext, tool

from .._places import Places
from ._models import CommandOutputParams
from ._texts import state_of, text_of, with_note

_LONGEST = 700.0
_MAX_BYTES = 32_768


@tool("command_output", level=Level.SAFE, read_only=True, timeout=_LONGEST, category="command")
async def command_output(params: CommandOutputParams, ctx: ToolContext) -> str:
    """Read the output of a command in the background from an offset on, and wait for more, or for its end."""
    request = {**params.model_dump(), "max_bytes": _MAX_BYTES}
    found = await ctx.dispatch("shell.output", request, **Places.of(ctx).shell())
    text = "".join(text_of(part["content"]) for part in found["parts"])
    if found["omitted"]:
        text = f"[{found['omitted']:,} bytes are no longer kept]\n{text}"
    more = found["running"] or found["next"] < found["size"]
    left = found["size"] - found["next"]
    notes = [state_of(found)]
    if more:
        notes.append(f"continue with offset {found['next']}" + (f", {left:,} bytes follow" if left else ""))
    return with_note(text, "; ".join(notes))
