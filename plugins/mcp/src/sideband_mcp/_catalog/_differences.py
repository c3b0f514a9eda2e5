"""How two catalogs differ, for the person who decides about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import unified_diff
from typing import Protocol

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


_MAX_LINES = 400
_LONGEST = 500


def differences(before: Offered, after: Offered) -> tuple[str, ...]:
    """Return the differences as lines: of a new tool all of its definition, of a changed one what changed.

    Characters that move the cursor or hide text are shown as escapes.
    """
    old, new = {one.name: one for one in before.tools}, {one.name: one for one in after.tools}
    lines = [f"new feature {name}" for name in after.features if name not in before.features]
    for name in sorted({*old, *new}):
        if old.get(name) == new.get(name):
            continue
        what = "new" if name not in old else "removed" if name not in new else "changed"
        lines.append(f"{what} tool {name}")
        lines += list(unified_diff(_lines(old.get(name)), _lines(new.get(name)), lineterm="", n=1))[2:]
    shown = [render(one)[:_LONGEST] for one in lines[:_MAX_LINES]]
    return (*shown, *([f"{len(lines) - _MAX_LINES:,} more lines"] if len(lines) > _MAX_LINES else ()))


def _lines(one: ToolDefinition | None) -> list[str]:
    if one is None:
        return []
    parameters = json.dumps(one.parameters, indent=1, ensure_ascii=False, sort_keys=True)
    return [*one.description.splitlines(), *parameters.splitlines()]
