"""What a model is told when one of these tools can't do it.

ToolsError(SidebandError)          tools.failed
├── SkillUnknown(LookupError)      tools.skill
└── SkillFileUnreadable(OSError)   tools.skill_file
"""

from __future__ import annotations

from collections.abc import Sequence

from sideband import SidebandError
from sideband.suggestions import did_you_mean

_MOST_NAMED = 20


class ToolsError(SidebandError):
    """A tool could not do what was asked, and changed nothing."""

    code = "tools.failed"


class SkillUnknown(ToolsError, LookupError):
    """The agent has no skill of this name."""

    code = "tools.skill"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        more = ", …" if len(known) > _MOST_NAMED else ""
        hint = f"there are: {', '.join(known[:_MOST_NAMED])}{more}" if known else "there are no skills"
        super().__init__(f"there is no skill `{name}`{did_you_mean(name, known)}", hint=hint)


class SkillFileUnreadable(ToolsError, OSError):
    """A file of a skill that is not there, is none that may be read, or is no text."""

    code = "tools.skill_file"

    def __init__(self, skill: str, file: str, problem: str) -> None:
        super().__init__(
            f"`{file}` of the skill `{skill}` can't be read: {problem}",
            hint="call `skill` without `file`: it lists the files that there are",
        )
