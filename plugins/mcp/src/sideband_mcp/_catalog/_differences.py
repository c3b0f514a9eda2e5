"""How two catalogs differ, for the person who decides about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Protocol

from attrs import frozen
from sideband.rendering import render

from .._models import ToolDefinition


class Offered(Protocol):
    """What a server offers, or what the user accepted of it."""

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """The definitions of its tools."""

    @property
    def features(self) -> Sequence[str]:
        """What it offers besides tools."""


MAX_LINES = 2_000
"""The maximum number of lines of one question. The terminal shows as many."""
_MAX_CHARACTERS = 200_000  # of the lines as JSON; approvals keep a little more, and shorten what is longer
_OTHER_LINES = 10  # of features, and of what follows
_LONGEST = 400
_MAX_INDENT = 40  # a deep schema must not become much longer than it is


@frozen
class Differences:
    """What one question shows of the differences between two catalogs.

    Attributes:
        lines: the differences: of a new tool all of its definition, of a changed one what changed.
        tools: the definitions that the user has accepted, or accepts with them. What does not fit is in none of both:
            the user is asked about it afterwards.
        unshown: the names of tools whose definitions are too long for any question.
    """

    lines: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    unshown: tuple[str, ...]


def differences(before: Offered, after: Offered) -> Differences:
    """Return the differences, as far as they fit into one question.

    Characters that move the cursor or hide text are shown as escapes.
    """
    old, new = {one.name: one for one in before.tools}, {one.name: one for one in after.tools}
    lines = [f"new feature {name}" for name in after.features if name not in before.features]
    tools, unshown = [one for one in after.tools if old.get(one.name) == one], []
    total = waiting = 0
    for name in sorted({*old, *new}):
        if old.get(name) == new.get(name):
            continue
        added = list(_difference(name, old.get(name), new.get(name)))
        size = sum(len(json.dumps(line)) for line in added)
        if not _fits(len(added), size):
            unshown += [name] if name in new else []
        elif waiting or not _fits(len(lines) + len(added), total + size):
            waiting += 1
        else:
            lines += added
            total += size
            tools += [new[name]] if name in new else []
    if waiting:
        lines.append(f"{waiting:,} more tools: you are asked about them afterwards")
    return Differences(tuple(lines), tuple(sorted(tools, key=lambda one: one.name)), tuple(unshown))


def _fits(lines: int, characters: int) -> bool:
    return lines < MAX_LINES - _OTHER_LINES and characters < _MAX_CHARACTERS


def _difference(name: str, old: ToolDefinition | None, new: ToolDefinition | None) -> Iterator[str]:
    what = "new" if old is None else "removed" if new is None else "changed"
    lines = [f"{what} tool {name}", *list(unified_diff(_lines(old), _lines(new), lineterm="", n=1))[2:]]
    for line in map(render, lines):
        yield line[:_LONGEST]
        # All of it is shown: an instruction could be at the end of a long line.
        yield from (f"{line[0]}… {line[at : at + _LONGEST]}" for at in range(_LONGEST, len(line), _LONGEST))


def _lines(one: ToolDefinition | None) -> list[str]:
    if one is None:
        return []
    parameters = json.dumps(one.parameters, indent=1, ensure_ascii=False, sort_keys=True)
    return [*one.description.splitlines(), *map(_indented, parameters.splitlines())]


def _indented(line: str) -> str:
    text = line.lstrip(" ")
    return " " * min(len(line) - len(text), _MAX_INDENT) + text
