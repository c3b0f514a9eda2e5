"""The tool `skill_delete`: delete a skill, or a file of one."""

from __future__ import annotations

from sideband.ops import Level, OpError
from sideband.tools import ToolContext, tool

from .._errors import SkillFileName
from ._models import SkillDeleteParams
from ._own_skills import OwnSkills

_MANIFEST = "SKILL.md"
_MOST_FILES = 5_000


@tool("skill_delete", level=Level.CONTROLLED, resume="replay")
async def skill_delete(params: SkillDeleteParams, ctx: ToolContext) -> str:
    """Delete a skill of the user, or a file of one. `undo` brings it back."""
    own = OwnSkills.of(ctx)
    if params.file == _MANIFEST:
        raise SkillFileName(_MANIFEST, "a skill cannot be without it; omit `file` to delete the whole skill")
    if params.file is not None:
        path = own.path(params.name, params.file)
        await ctx.dispatch("files.delete", {"path": path}, uses=own.uses)
        await ctx.skills(again=True)
        return f"deleted {path}"
    folder = own.folder(params.name)
    try:
        # First, so that an interruption leaves nothing that could be loaded.
        await ctx.dispatch("files.delete", {"path": f"{folder}/{_MANIFEST}"}, uses=own.uses)
    except OpError as error:
        if error.code != "file.missing":
            raise
        raise SkillFileName(f"{params.name}/{_MANIFEST}", f"there is no such skill in {own.root}") from error
    request = {"path": folder, "pattern": "**/*", "hidden": True, "limit": _MOST_FILES}
    entries = (await ctx.dispatch("files.find", request, uses=own.uses))["entries"]
    folders = sorted((f"{one['name']}/" for one in entries if one["kind"] == "folder"), reverse=True)
    files = [one["name"] for one in entries if one["kind"] != "folder"]
    for name in [*files, *folders]:
        await ctx.dispatch("files.delete", {"path": f"{folder}/{name}"}, uses=own.uses)
    await ctx.dispatch("files.delete", {"path": f"{folder}/"}, uses=own.uses)
    await ctx.skills(again=True)
    return f"deleted the skill {params.name} ({len(files) + 1:,} files)"
