"""The tool `output`: read a result of which only a part was shown."""

from __future__ import annotations

from itertools import islice

from anyio import to_thread
from sideband.ops import Level
from sideband.tools import ToolContext, tool

from ._models import OutputParams
from ._output_search import excerpt, search

_MAX_MATCHES = 30


@tool("output", level=Level.SAFE, read_only=True)
async def output(params: OutputParams, ctx: ToolContext) -> str:
    """Read a part of a result that was too long to be shown completely, or search it.

    Use it when a result reports that characters were omitted and names a handle.
    """
    text = await ctx.output(params.handle)
    if params.pattern is None:
        return _part(text, params.offset, params.limit)
    return await to_thread.run_sync(_matches, text, params.pattern, params.offset)


def _part(text: str, offset: int, limit: int) -> str:
    end = min(offset + limit, len(text))
    if offset >= len(text):
        return f"[offset {offset:,} is beyond the end: the result has {len(text):,} characters]"
    more = f"; continue with offset {end}" if end < len(text) else ", the end"
    return f"[characters {offset:,} to {end:,} of {len(text):,}{more}]\n{text[offset:end]}"


def _matches(text: str, pattern: str, offset: int) -> str:
    rest = text[offset:]
    found = list(islice(search(rest, pattern), _MAX_MATCHES + 1))
    if not found:
        return f"[no match for `{pattern}` in the {len(rest):,} characters from {offset:,}]"
    shown = [f"{offset + match.start}: {excerpt(rest, match)}" for match in found[:_MAX_MATCHES]]
    more = f"; continue with offset {offset + found[-1].start}" if len(found) > _MAX_MATCHES else ""
    return "\n".join([f"[{len(shown)} matches, each with the offset of its first character{more}]", *shown])
