"""The skills that belong to the tools that a model sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen
from sideband.host import ToolRegistry

from .._session_tools import SessionTools


@frozen
class OfferedSkills:
    """The skills that a model sees: those with a visible tool, and those without tools.

    Args:
        registry: the registry of all skills.
        tools: the tools of the session.
    """

    registry: ToolRegistry = field(repr=False)
    tools: SessionTools = field(repr=False)

    async def all(self, *, again: bool = False) -> tuple[Mapping[str, Any], ...]:
        """Return the skills, as ``ToolContext.skills`` describes them."""
        offered = self.tools.offered
        if again:
            self.registry.forget_skills()
            await self.registry.view()
            offered = self.tools.newest()
        return tuple(
            skill
            for skill in await self.registry.skills()
            if not skill["tools"] or any(offered.get(name) for name in skill["tools"])
        )
