"""Errors of these tools. The model reads these messages.

ToolsError(SidebandError)          tools.failed
├── SkillUnknown(LookupError)      tools.skill
└── SkillFileUnreadable(OSError)   tools.skill_file
"""

from __future__ import annotations

from collections.abc import Sequence

from sideband import SidebandError
from sideband.suggestions import did_you_mean

_MAX_NAMED = 20


class ToolsError(SidebandError):
    """A call of a tool failed and changed nothing."""

    code = "tools.failed"


class SkillUnknown(ToolsError, LookupError):
    """The agent has no skill of this name."""

    code = "tools.skill"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        more = ", …" if len(known) > _MAX_NAMED else ""
        hint = f"available skills: {', '.join(known[:_MAX_NAMED])}{more}" if known else "there are no skills"
        super().__init__(f"unknown skill `{name}`{did_you_mean(name, known)}", hint=hint)


class SkillFileUnreadable(ToolsError, OSError):
    """A file of a skill does not exist, must not be read, or is not text."""

    code = "tools.skill_file"

    def __init__(self, skill: str, file: str, problem: str) -> None:
        super().__init__(
            f"failed to read `{file}` of skill `{skill}`: {problem}",
            hint="call `skill` without `file`: it lists the files",
        )
