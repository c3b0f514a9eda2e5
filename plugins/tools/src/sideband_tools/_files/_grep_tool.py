"""The tool `grep`: find the lines of files that match a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from sideband.ops import Level
from sideband.tools import ToolContext, tool

from .._places import Places
from ._models import GrepParams

_REASONS = {
    "limit": "there are more matches: use a narrower pattern, or `names`",
    "time": "the search took too long and ended early: search a smaller folder, or use `names`",
    "names": "the folder has too many files, and some were not searched: search a smaller folder",
}


@tool("grep", level=Level.MONITORED, read_only=True, resume="replay")
async def grep(params: GrepParams, ctx: ToolContext) -> str:
    """Find the lines that match a regular expression, in a file or in all text files below a folder.

    Hidden files and those that `.gitignore` excludes are left out. Expressions have the syntax of RE2.
    """
    places = Places.of(ctx)
    path = places.path(params.path)
    place = places.place_of(path)
    request = {
        **params.model_dump(exclude={"path"}),
        "path": place,
        "below": path.removeprefix(place).strip("/"),
    }
    found = await ctx.dispatch("files.search", request, **places.files("read"))
    note = _note(found)
    if not found["matches"]:
        return f"[no line matches{note}]"
    files = groupby(found["matches"], key=lambda one: one["path"])
    shown = "\n\n".join(_file(places.shown(f"{place.rstrip('/')}/{name}"), [*group]) for name, group in files)
    return f"{shown}\n[{_counted(len(found['matches']), 'match', 'matches')}{note}]"


def _note(found: Mapping[str, Any]) -> str:
    why = f"; {_REASONS[found['truncated']]}" if found["truncated"] else ""
    return f" in {_counted(found['files'], 'file', 'files')}{why}"


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _file(path: str, matches: list[Mapping[str, Any]]) -> str:
    """Return the lines of one file under its path. Lines around a match have a dash instead of a colon."""
    lines: dict[int, str] = {}
    for one in matches:
        first = one["line"] - len(one["before"])
        for number, text in enumerate(one["before"], first):
            lines.setdefault(number, f"{number}- {text}")
        lines[one["line"]] = f"{one['line']}: {one['text']}"
        for number, text in enumerate(one["after"], one["line"] + 1):
            lines.setdefault(number, f"{number}- {text}")
    return "\n".join([path, *(lines[number] for number in sorted(lines))])
