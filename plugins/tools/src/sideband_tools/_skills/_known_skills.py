"""The skills that an agent may use, and the version of one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from sideband.tools import SkillUses, ToolContext

from .._errors import SkillUnknown


@frozen
class PreparedSkill:
    """One version of a skill, whose files cannot change any more.

    Attributes:
        name: its name.
        source: its own folder.
        origin: where it is from.
        found: the result of `skills.prepare`.
    """

    name: str
    source: Path
    origin: str
    found: Mapping[str, Any]

    @property
    def folder(self) -> str:
        """The snapshot of its files."""
        return str(self.found["folder"])

    @property
    def digest(self) -> str:
        """The digest of its files."""
        return str(self.found["digest"])

    def uses(self, capabilities: Sequence[str]) -> SkillUses:
        """Return capabilities that are given to this version of the skill."""
        key, of_project = str(self.found["key"]), self.origin == "project"
        return SkillUses(self.name, key, self.digest, str(self.source), tuple(capabilities), of_project)


async def find_skill(ctx: ToolContext, name: str) -> Mapping[str, Any]:
    """Return the description of a skill.

    Raises:
        SkillUnknown: if the agent has no skill of this name.
    """
    skills = {str(one["name"]): one for one in await ctx.skills()}
    if name not in skills:
        raise SkillUnknown(name, sorted(skills))
    return skills[name]


async def prepare_skill(ctx: ToolContext, described: Mapping[str, Any], **params: Any) -> PreparedSkill:
    """Take a snapshot of a skill as it is now, with the parameters of `skills.prepare`."""
    source = Path(described["location"]).parent
    found = await ctx.dispatch("skills.prepare", {"folder": str(source), **params})
    return PreparedSkill(str(described["name"]), source, str(described.get("origin", "")), found)
