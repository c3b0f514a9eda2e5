"""The tool `output`: the whole of a result of which only a part was shown."""

from __future__ import annotations

from itertools import islice

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field
from sideband.ops import Level
from sideband.tools import ToolContext, tool

from ._search import excerpt, search

__all__ = ["output"]

_MOST_CHARACTERS = 16_000
_MOST_MATCHES = 30


class OutputParams(BaseModel):
    """Which part to read."""

    model_config = ConfigDict(extra="forbid")

    handle: str = Field(min_length=1, max_length=500, description="The handle that stands in the cut result.")
    offset: int = Field(default=0, ge=0, description="The first character to read, counted from 0.")
    limit: int = Field(default=8_000, ge=1, le=_MOST_CHARACTERS, description="How many characters to read.")
    pattern: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Text to search for instead, from `offset` on: tells where it stands, with what is around it. "
        "* stands for anything within a line; upper and lower case are the same.",
    )


@tool("output", level=Level.SAFE, read_only=True)
async def output(params: OutputParams, ctx: ToolContext) -> str:
    """Read a part of a result that was too long to be shown whole, or search in it.

    Use it when a result says that it was cut and names a handle.
    """
    text = await ctx.output(params.handle)
    if params.pattern is None:
        return _part(text, params.offset, params.limit)
    return await to_thread.run_sync(_matches, text, params.pattern, params.offset)


def _part(text: str, offset: int, limit: int) -> str:
    end = min(offset + limit, len(text))
    if offset >= len(text):
        return f"[there is nothing from character {offset:,} on: the result has {len(text):,}]"
    more = f"; go on with offset {end}" if end < len(text) else ", its end"
    return f"[characters {offset:,} to {end:,} of {len(text):,}{more}]\n{text[offset:end]}"


def _matches(text: str, pattern: str, offset: int) -> str:
    rest = text[offset:]
    found = list(islice(search(rest, pattern), _MOST_MATCHES + 1))
    if not found:
        return f"[`{pattern}` is not in the {len(rest):,} characters from {offset:,} on]"
    shown = [f"{offset + match.start}: {excerpt(rest, match)}" for match in found[:_MOST_MATCHES]]
    more = f"; go on with offset {offset + found[-1].start}" if len(found) > _MOST_MATCHES else ""
    return "\n".join([f"[{len(shown)} places, each with the offset of its first character{more}]", *shown])
