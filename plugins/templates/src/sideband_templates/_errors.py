"""Errors of making a project from a template.

    SidebandError
    ├── AnswerRefused(ValueError)           template.answer, template.name
    ├── QuestionUnknown(LookupError)        template.question
    ├── TargetExists(FileExistsError)       template.exists
    └── TargetUnwritable(OSError)           template.unwritable

When one of them is raised, no file has been written.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sideband import SidebandError
from sideband.exit_codes import ExitCode
from sideband.suggestions import did_you_mean


class AnswerRefused(SidebandError, ValueError):
    """An answer cannot be used in a project.

    Args:
        question: the name of the question.
        problem: why the answer cannot be used, beginning with its value.
        hint: what to answer instead.
    """

    code = "template.answer"
    exit_code = ExitCode.USAGE

    def __init__(self, question: str, problem: str, hint: str) -> None:
        code = "template.name" if question in ("name", "project") else None
        super().__init__(f"invalid {question}: {problem}", hint=hint, code=code)
        self.question = question


class QuestionUnknown(SidebandError, LookupError):
    """A template has no question with that name."""

    code = "template.question"
    exit_code = ExitCode.USAGE

    def __init__(self, template: str, question: str, known: Iterable[str]) -> None:
        known = list(known)
        super().__init__(
            f"the template `{template}` has no question `{question}`{did_you_mean(question, known)}",
            hint=f"its questions are {', '.join(known)}",
        )


class TargetExists(SidebandError, FileExistsError):
    """The folder that a project would be written to exists. It is not changed."""

    code = "template.exists"
    exit_code = ExitCode.USAGE

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} exists", hint="choose another name, or another parent folder with --output")


class TargetUnwritable(SidebandError, OSError):
    """The parent folder of a project is missing or cannot be written."""

    code = "template.unwritable"
    exit_code = ExitCode.USAGE

    def __init__(self, folder: Path, error: OSError) -> None:
        super().__init__(
            f"cannot write to {folder}: {error.strerror or error}",
            hint="create the folder, check its permissions and the free space, or choose another one with --output",
        )
