"""The tool `skill`: read the instructions of a skill and its other files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anyio import to_thread
from sideband.active_skills import ALLOWED_KEY, GRANT_KEY, changing_tools, pre_approving
from sideband.ops import Level, OpError
from sideband.tools import ToolContext, ToolOutput, tool

from ._known_skills import find_skill, prepare_skill
from ._models import SkillParams
from ._skill_files import list_files, read_text


@tool("skill", level=Level.SAFE, read_only=True)
async def skill(params: SkillParams, ctx: ToolContext) -> str | ToolOutput:
    """Read the instructions of a skill before you start a task that it covers, or read another of its files.

    The instructions are followed by the names of the skill's tools and files.
    """
    found = await find_skill(ctx, params.name)
    folder = Path(found["location"]).parent
    if params.file is not None:
        return await to_thread.run_sync(read_text, params.name, folder, params.file)
    text = await to_thread.run_sync(_instructions, found, folder)
    # The key by which it counts as active.
    return ToolOutput(text, metadata={"skill": params.name, **await _allowed(ctx, found)})


async def _allowed(ctx: ToolContext, found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tools that the skill lists as pre-approved, if the user has granted that for this version."""
    tools = changing_tools(found.get("allowed_tools", ()))
    if not tools:
        return {ALLOWED_KEY: []}
    try:
        prepared = await prepare_skill(ctx, found)
        uses = prepared.uses([pre_approving(one) for one in tools])
        request = {"skill": prepared.name, "tools": list(tools)}
        allowed: list[str] = (await ctx.dispatch("skills.allow", request, uses=uses))["tools"]
    except OpError:
        # The instructions are useful without it: each use is then asked about.
        return {ALLOWED_KEY: []}
    if not await ctx.is_granted(uses):
        return {ALLOWED_KEY: allowed}  # the user has approved it once
    version = {"key": uses.key, "digest": uses.digest, "source": uses.source, "of_project": uses.of_project}
    return {ALLOWED_KEY: allowed, GRANT_KEY: version}


def _instructions(found: Mapping[str, Any], folder: Path) -> str:
    text = _without_frontmatter(read_text(found["name"], folder, Path(found["location"]).name))
    parts = [text.strip() or str(found["description"])]
    if found["tools"]:
        parts.append(f"Tools of this skill: {', '.join(found['tools'])}")
    if files := [file for file in list_files(folder) if file != "SKILL.md"]:
        parts.append("Files of this skill:\n" + "\n".join(files))
    return "\n\n".join(parts)


def _without_frontmatter(text: str) -> str:
    """Return the text after the frontmatter: the block between a first line ``---`` and the next one."""
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    return text if end is None else "".join(lines[end + 1 :])
