"""The tool `edit`: replace texts in a file, all together."""

from __future__ import annotations

from difflib import unified_diff

from sideband.ops import Level
from sideband.tools import ToolContext, ToolOutput, tool

from .._errors import FileNotRead, FileNotReadable, FileStale
from .._places import Places
from ._changing import write_known
from ._known_files import known_digest
from ._models import EditParams
from ._replacing import encoded, replaced
from ._text import stored_text

_CONTEXT = 2
_LONGEST_DIFF = 4_000
_MOST_COMPARED = 2_000  # lines: comparing takes quadratic time


@tool("edit", level=Level.CONTROLLED, resume="replay")
async def edit(params: EditParams, ctx: ToolContext) -> ToolOutput:
    """Replace texts in a file that you have read. Each `old` must occur exactly once, unless `all` is set.

    Make all changes of one file in one call: if one fails, the file stays as it is. The encoding of the file and the
    ends of its lines stay as they are.
    """
    places = Places.of(ctx)
    path = places.changed_path(params.path)
    name = places.shown(path)
    known = await known_digest(ctx, path)
    if known is None:
        raise FileNotRead(name)
    found = await ctx.dispatch("files.read", {"path": path, "kind": "bytes"}, **places.files("read", "write"))
    if found["sha256"] != known:
        raise FileStale(name)
    stored = stored_text(found["content"])
    if stored is None:
        raise FileNotReadable(name, "it is not text")
    changed = replaced(name, stored, params.edits)
    await write_known(ctx, places, path, encoded(name, stored, changed))
    return ToolOutput(f"changed {name}\n{_difference(stored.text, changed)}")


def _difference(old: str, new: str) -> str:
    """Return the changed lines with some lines around them, if the texts are short enough to be compared."""
    before, after = old.splitlines(), new.splitlines()
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    first = max(0, start - _CONTEXT)
    last = max(0, end - _CONTEXT)
    old_part, new_part = before[first : len(before) - last], after[first : len(after) - last]
    if len(old_part) + len(new_part) > _MOST_COMPARED:
        return f"[lines {start + 1} to {len(after) - end} changed]"
    shown = "\n".join([*unified_diff(old_part, new_part, n=_CONTEXT, lineterm="")][2:])
    hidden = len(shown) - _LONGEST_DIFF
    note = f"\n[{hidden:,} characters omitted]" if hidden > 0 else ""
    return f"[from line {first + 1}]\n{shown[:_LONGEST_DIFF]}{note}"
