"""The skills that go with the tools that a model is told about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen
from sideband.host import ToolRegistry
from sideband.tools import ToolView


@frozen
class OfferedSkills:
    """The skills that a model is told about: those with a tool that it is told about, or without any.

    Args:
        registry: knows all skills.
        tools: the tools that the model is told about.
    """

    registry: ToolRegistry = field(repr=False)
    tools: ToolView = field(repr=False)

    async def all(self) -> tuple[Mapping[str, Any], ...]:
        """Each with ``name``, ``description``, ``location`` and ``tools``."""
        return tuple(
            skill
            for skill in await self.registry.skills()
            if not skill["tools"] or any(self.tools.get(name) for name in skill["tools"])
        )
