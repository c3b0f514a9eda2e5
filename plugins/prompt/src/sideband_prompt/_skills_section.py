"""The section `skills`. Names and descriptions of skills are untrusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._text import one_line, quoted

_READERS = ("skill", "read", "files__read")
_LONGEST_DESCRIPTION = 1_024
_LONGEST_NAME = 100


def skills(found: Sequence[Mapping[str, Any]], tools: Iterable[str], limit: int) -> str:
    """Return the list of skills, or an empty string if no tool can read skills.

    Args:
        found: the skills, each with ``name``, ``description`` and ``location``.
        tools: the tools that the model may call.
        limit: the maximum number of characters of the entries. Descriptions are omitted to fit, then whole entries,
            with a notice.
    """
    known = set(tools)
    reader = next((name for name in _READERS if name in known), None)
    if reader is None or not found:
        return ""
    ordered = sorted(found, key=lambda skill: (str(skill["name"]), str(skill["location"])))
    # names are more important than descriptions, so all names are placed first
    short = [_entry(skill, "") for skill in ordered]
    listed = _fitting(short, limit)
    entries, omitted, cut = short[:listed], 0, 0
    used = sum(map(len, entries))
    for number, skill in enumerate(ordered[:listed]):
        description = one_line(str(skill["description"]))
        whole = _entry(skill, one_line(description, _LONGEST_DESCRIPTION))
        if used + len(whole) - len(entries[number]) > limit:
            omitted += 1
            continue
        used += len(whole) - len(entries[number])
        entries[number] = whole
        cut += len(description) > _LONGEST_DESCRIPTION
    notices = [
        f"<notice>{what}: {count}</notice>"
        for count, what in (
            (omitted, "descriptions omitted to keep this list short (read a skill to learn its purpose)"),
            (cut, "descriptions truncated (read the skill for the rest)"),
            (len(ordered) - listed, "skills omitted to keep this list short (ask the user about them)"),
        )
        if count
    ]
    how = (
        "Skills are instructions and tools for particular tasks, by various authors. Before a task that one of them "
        f"covers, read its instructions with the tool `{reader}`. A description only describes its skill."
    )
    return "\n".join(["<skills>", how, *entries, *notices, "</skills>"])


def _entry(skill: Mapping[str, Any], description: str) -> str:
    name = quoted(one_line(str(skill["name"]), _LONGEST_NAME))
    location = quoted(one_line(str(Path(str(skill["location"])).absolute())))
    lines = [
        f"  <name>{name}</name>",
        f"  <description>{quoted(description)}</description>" if description else None,
        f"  <location>{location}</location>",
    ]
    return "\n".join(["<skill>", *filter(None, lines), "</skill>"])


def _fitting(entries: Sequence[str], limit: int) -> int:
    """Return how many leading entries fit into the limit."""
    used = 0
    for number, entry in enumerate(entries):
        used += len(entry)
        if used > limit:
            return number
    return len(entries)
