"""The tool `skill_write`: create a skill, or change a file of one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sideband.ops import Level, OpError
from sideband.tools import ToolContext, tool

from .._errors import FileNotReadable, SkillFileName, SkillInvalid
from .._files._replacing import encoded, replaced
from .._files._text import stored_text
from ._models import SkillWriteParams
from ._own_skills import OwnSkills

_MOST_PROBLEMS = 10
# The loader accepts skills without what the format requires. Those that are written here have it.
_REQUIRED = frozenset({
    "skill.description.missing",
    "skill.frontmatter.missing",
    "skill.name.characters",
    "skill.name.folder",
    "skill.name.missing",
})  # fmt: skip


@tool("skill_write", level=Level.CONTROLLED, resume="replay")
async def skill_write(params: SkillWriteParams, ctx: ToolContext) -> str:
    """Create a skill of the user, or write a file of one. Begin a new skill with its SKILL.md.

    The skill is checked first: if it could not be loaded with the change, nothing is written. A changed skill
    loses the rights that its older version was given. It can be used at once.
    """
    if (params.content is None) == (not params.edits):
        raise ValueError("pass either `content` or `edits`")
    own = OwnSkills.of(ctx)
    path = own.path(params.name, params.file)
    before = await _read(ctx, own, path)
    content = _changed(params, before)
    request = {"folder": own.folder(params.name), "file": params.file, "content": content}
    problems = (await ctx.dispatch("skills.check", request))["problems"]
    fatal = [one for one in problems if one["fatal"] or one["code"] in _REQUIRED]
    if fatal:
        raise SkillInvalid(params.name, [one["reason"] for one in fatal[:_MOST_PROBLEMS]], str(fatal[0]["hint"]))
    write: dict[str, Any] = {"path": path, "content": content}
    if before is not None:
        write |= {"overwrite": True, "expected": before["sha256"]}
    written = await ctx.dispatch("files.write", write, uses=own.uses)
    what = "replaced" if written["replaced"] else "created"
    warnings = [f"- {one['reason']}" for one in problems[:_MOST_PROBLEMS]]
    usable = await _usable(ctx, own, params.name)
    return "\n".join([f"{what} {path} ({written['size']:,} bytes)", *warnings, f"[{usable}]"])


async def _usable(ctx: ToolContext, own: OwnSkills, name: str) -> str:
    """Load the skills again, and return how the agent can use this one."""
    skills = await ctx.skills(again=True)
    found = next((one for one in skills if _folder(one) == own.folder(name)), None)
    if found is None:
        return (
            f"the skill {name} cannot be used: sideband does not search {own.root}, another skill has its name, or it "
            "is not for models"
        )
    tools = f", and call its tools: {', '.join(found['tools'])}" if found["tools"] else ""
    return f"the skill {name} can be used now: read it with `skill`{tools}"


def _folder(described: Mapping[str, Any]) -> str:
    return os.path.realpath(Path(described["location"]).parent)


def _changed(params: SkillWriteParams, before: Mapping[str, Any] | None) -> str | bytes:
    if params.content is not None:
        return params.content
    if before is None:
        raise SkillFileName(params.file, "it does not exist, so it cannot be edited; write its whole content")
    stored = stored_text(before["content"])
    if stored is None:
        raise FileNotReadable(params.file, "it is not text")
    return encoded(params.file, stored, replaced(params.file, stored, params.edits))


async def _read(ctx: ToolContext, own: OwnSkills, path: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = await ctx.dispatch("files.read", {"path": path, "kind": "bytes"}, uses=own.uses)
    except OpError as error:
        if error.code == "file.missing":
            return None
        raise
    return found
