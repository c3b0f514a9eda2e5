"""The tools of skills that a model may call for a skill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sideband.contexts import HandlerContext, SkillTool
from sideband.providers import ToolSchema

from ._errors import ModelToolUnknown


async def find_tools(names: Iterable[str], ctx: HandlerContext) -> Mapping[str, SkillTool]:
    """Return the named tools by the names that models see. The grant was checked before.

    Raises:
        ModelToolUnknown: if one does not exist, or its skill is not for models.
    """
    known = {one.name: one for one in await ctx.tools()}
    found: dict[str, SkillTool] = {}
    for name in names:
        tool = known.get(name)
        if tool is None or not tool.for_models:
            usable = [one.name for one in known.values() if one.for_models]
            raise ModelToolUnknown(name, usable, hidden=tool is not None)
        found[model_name(name)] = tool
    return found


def model_name(name: str) -> str:
    """Return the name that models see."""
    return name.replace(".", "__")


def definitions(tools: Mapping[str, SkillTool]) -> tuple[ToolSchema, ...]:
    """Return the definitions of tools for a request to a model."""
    return tuple(
        ToolSchema(name=name, description=tool.description, parameters=dict(tool.parameters))
        for name, tool in tools.items()
    )
