"""The errors of the ops.

OpFailed
└── SkillsError                         skills.failed
    ├── SkillUnreadable(ValueError)         skills.unreadable    the folder contains no skill that can be loaded
    ├── SkillChanged(RuntimeError)          skills.changed       the skill was changed after the question
    ├── ScriptKindUnknown(ValueError)       skills.kind          no interpreter is known for this kind of script
    ├── SkillFileMissing(LookupError)       skills.file          the skill has no such file
    ├── ScriptRequirements(ValueError)      skills.requirements  the packages of a script are declared wrongly
    └── PackagesFailed(RuntimeError)        skills.packages      the packages could not be installed
"""

from __future__ import annotations

from collections.abc import Sequence

from sideband.loading import SkillProblem
from sideband.ops import OpFailed
from sideband.suggestions import did_you_mean

_MAX_NAMED = 20


class SkillsError(OpFailed):
    """An op on a skill failed; nothing was changed."""

    nothing_happened = True
    code = "skills.failed"


class SkillUnreadable(SkillsError, ValueError):
    """A folder contains no skill that can be loaded."""

    code = "skills.unreadable"

    def __init__(self, folder: str, problems: Sequence[SkillProblem]) -> None:
        first = problems[0] if problems else None
        reason = first.reason if first else "it contains no skill, or several"
        super().__init__(f"cannot load the skill in `{folder}`: {reason}", hint=first.hint if first else "")


class SkillChanged(SkillsError, RuntimeError):
    """The files of a skill were changed after the user was asked about it."""

    code = "skills.changed"

    def __init__(self, skill: str) -> None:
        super().__init__(f"the files of the skill `{skill}` were changed meanwhile", hint="run the script again")


class ScriptKindUnknown(SkillsError, ValueError):
    """No interpreter is known for this kind of script."""

    code = "skills.kind"

    def __init__(self, script: str, kinds: Sequence[str]) -> None:
        super().__init__(f"cannot run `{script}`: no interpreter is known for it", hint=f"kinds: {', '.join(kinds)}")


class SkillFileMissing(SkillsError, LookupError):
    """The skill has no file of this name."""

    code = "skills.file"

    def __init__(self, skill: str, script: str, files: Sequence[str]) -> None:
        more = ", …" if len(files) > _MAX_NAMED else ""
        hint = f"its files: {', '.join(files[:_MAX_NAMED])}{more}"
        super().__init__(f"the skill `{skill}` has no file `{script}`{did_you_mean(script, files)}", hint=hint)


class ScriptRequirements(SkillsError, ValueError):
    """The packages of a script are declared wrongly, or need another version of Python."""

    code = "skills.requirements"

    def __init__(self, skill: str, problem: str, hint: str = "") -> None:
        super().__init__(
            f"the packages of the skill `{skill}` cannot be used: {problem}",
            hint=hint or "declare names and versions, such as `numpy>=2`",
        )


class PackagesFailed(SkillsError, RuntimeError):
    """The packages could not be installed; what was installed has been removed."""

    code = "skills.packages"

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem, hint=hint)


ERRORS = (
    PackagesFailed,
    ScriptKindUnknown,
    SkillFileMissing,
    ScriptRequirements,
    SkillChanged,
    SkillUnreadable,
    SkillsError,
)
"""The errors that callers can catch by class."""
