"""The skills that belong to the tools that a model sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen
from sideband.host import ToolRegistry
from sideband.tools import ToolView


@frozen
class OfferedSkills:
    """The skills that a model sees: those with a visible tool, and those without tools.

    Args:
        registry: the registry of all skills.
        tools: the tools that the model sees.
    """

    registry: ToolRegistry = field(repr=False)
    tools: ToolView = field(repr=False)

    async def all(self) -> tuple[Mapping[str, Any], ...]:
        """Return the skills, each with ``name``, ``description``, ``location`` and ``tools``."""
        return tuple(
            skill
            for skill in await self.registry.skills()
            if not skill["tools"] or any(self.tools.get(name) for name in skill["tools"])
        )
