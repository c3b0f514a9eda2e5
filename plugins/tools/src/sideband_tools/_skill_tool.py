"""The tool `skill`: read the instructions of a skill and its other files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anyio import to_thread
from sideband.ops import Level
from sideband.tools import ToolContext, tool

from ._errors import SkillUnknown
from ._models import SkillParams
from ._skill_files import list_files, read_text


@tool("skill", level=Level.SAFE, read_only=True)
async def skill(params: SkillParams, ctx: ToolContext) -> str:
    """Read the instructions of a skill before you start a task that it covers, or read another of its files.

    The instructions are followed by the names of the skill's tools and files.
    """
    skills = {str(one["name"]): one for one in await ctx.skills()}
    found = skills.get(params.name)
    if found is None:
        raise SkillUnknown(params.name, sorted(skills))
    folder = Path(found["location"]).parent
    if params.file is not None:
        return await to_thread.run_sync(read_text, params.name, folder, params.file)
    return await to_thread.run_sync(_instructions, found, folder)


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
