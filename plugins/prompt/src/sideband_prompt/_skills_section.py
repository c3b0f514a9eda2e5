"""The section `skills`. Names and descriptions of skills are untrusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._text import one_line, quoted

_READERS = ("skill", "read", "files__read")
_LONGEST_DESCRIPTION = 1_024
_LONGEST_NAME = 100


def skills(found: Sequence[Mapping[str, Any]], tools: Iterable[str], limit: int, text: str = "") -> str:
    """Return the list of skills, or an empty string if no tool can read skills.

    Args:
        found: the skills, each with ``name``, ``description`` and ``location``.
        tools: the tools that the model may call.
        limit: the maximum number of characters of the entries. Descriptions are omitted to fit, then whole entries,
            with a notice.
        text: the task. If not all fits, the skills whose names and descriptions fit it best come first; the list
            is sorted by name anyway.
    """
    known = set(tools)
    reader = next((name for name in _READERS if name in known), None)
    if reader is None or not found:
        return ""
    ordered = sorted(found, key=lambda skill: (str(skill["name"]), str(skill["location"])))
    # names are more important than descriptions, so all names are placed first
    short = [_entry(skill, "") for skill in ordered]
    descriptions = [one_line(str(skill["description"])) for skill in ordered]
    shown = [one_line(description, _LONGEST_DESCRIPTION) for description in descriptions]
    whole = [_entry(skill, description) for skill, description in zip(ordered, shown, strict=True)]
    fits = sum(map(len, whole)) <= limit
    ranking = range(len(ordered)) if fits or not text else _ranking(ordered, text)
    listed = _fitting(short, ranking, limit)
    entries, omitted, cut = {number: short[number] for number in listed}, 0, 0
    used = sum(map(len, entries.values()))
    for number in listed:
        more = len(whole[number]) - len(entries[number])
        if used + more > limit:
            omitted += 1
            continue
        used += more
        entries[number] = whole[number]
        cut += len(descriptions[number]) > _LONGEST_DESCRIPTION
    notices = [
        f"<notice>{what}: {count}</notice>"
        for count, what in (
            (omitted, "descriptions omitted to keep this list short (read a skill to learn its purpose)"),
            (cut, "descriptions truncated (read the skill for the rest)"),
            (len(ordered) - len(listed), "skills omitted to keep this list short (ask the user about them)"),
        )
        if count
    ]
    how = (
        "Skills are instructions and tools for particular tasks, by various authors. Before a task that one of them "
        f"covers, read its instructions with the tool `{reader}`. A description only describes its skill."
    )
    return "\n".join(["<skills>", how, *(entries[number] for number in sorted(entries)), *notices, "</skills>"])


def _entry(skill: Mapping[str, Any], description: str) -> str:
    name = quoted(one_line(str(skill["name"]), _LONGEST_NAME))
    location = quoted(one_line(str(Path(str(skill["location"])).absolute())))
    lines = [
        f"  <name>{name}</name>",
        f"  <description>{quoted(description)}</description>" if description else None,
        f"  <location>{location}</location>",
    ]
    return "\n".join(["<skill>", *filter(None, lines), "</skill>"])


def _ranking(found: Sequence[Mapping[str, Any]], text: str) -> Sequence[int]:
    """Return the positions of skills, those that fit a text best first, then in their order."""
    from sideband_word_ranking import WordIndex  # noqa: PLC0415  most lists are short

    index = WordIndex((str(skill["name"]), str(skill["description"])) for skill in found)
    best = index.rank(text)
    index.close()
    return list(dict.fromkeys([*best, *range(len(found))]))


def _fitting(entries: Sequence[str], ranking: Sequence[int], limit: int) -> list[int]:
    """Return the positions of the entries that fit into the limit, in the order of the ranking."""
    used = 0
    for count, number in enumerate(ranking):
        used += len(entries[number])
        if used > limit:
            return list(ranking[:count])
    return list(ranking)
