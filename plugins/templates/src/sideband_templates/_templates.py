"""The templates: their folders, questions and answers.

The folders are those of cookiecutter: ``cookiecutter.json`` has the questions, and the folder whose name contains
``cookiecutter`` has the files. Values of ``cookiecutter.json`` are templates, answers are never.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from jinja2 import StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from sideband import __version__

from ._errors import AnswerRefused, QuestionUnknown
from ._rules import problems

TEMPLATES = ("distribution", "plugin", "skill")
"""The names of the templates."""
_VERSION = "sideband_version"


@frozen
class Question:
    """A question of a template.

    Attributes:
        name: the name of the question, and of the variable in the files.
        default: the answer if no other is given: a template that may use the answers of earlier questions.
        choices: the possible answers, the default first, or an empty tuple for any text.
    """

    name: str
    default: str
    choices: tuple[str, ...] = ()

    @property
    def is_derived(self) -> bool:
        """Whether the answer is always the default, since it follows from other answers."""
        return self.name.startswith("__")


@frozen
class Template:
    """One of the templates.

    Attributes:
        name: ``skill``, ``plugin`` or ``distribution``.
        folder: the folder with ``cookiecutter.json``.
        questions: all questions, in their order. The first one is for the name of the project.
    """

    name: str
    folder: Path
    questions: tuple[Question, ...]

    @classmethod
    def read(cls, name: str) -> Template:
        """Read an installed template, or that of the repository in an editable installation."""
        folder = Path(__file__).with_name(f"cookiecutter-{name}")
        if not folder.is_dir():
            folder = Path(__file__).parents[4] / folder.name
        found: dict[str, Any] = json.loads((folder / "cookiecutter.json").read_text(encoding="utf-8"))
        # `__prompts__` and names with one underscore are settings of cookiecutter.
        names = [one for one in found if not one.startswith("_") or (one.startswith("__") and one != "__prompts__")]
        return cls(name, folder, tuple(_question(one, found[one]) for one in names))

    def answers(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the answers to all questions, those that are derived included.

        Raises:
            QuestionUnknown: if there is no question with a given name.
            AnswerRefused: if an answer is invalid. The message names it and the reason, the hint a valid one.
        """
        asked = [one.name for one in self.questions if not one.is_derived]
        for name in given:
            if name not in asked:
                raise QuestionUnknown(self.name, name, asked)
        known = {_VERSION: __version__, **given}
        answers: dict[str, str] = {}
        environment = make_environment()
        for question in self.questions:
            if question.name in known and not question.is_derived:
                answers[question.name] = known[question.name]
            else:
                default = environment.from_string(question.default)
                answers[question.name] = default.render(cookiecutter=answers)
            if question.choices and answers[question.name] not in question.choices:
                raise AnswerRefused(
                    question.name, repr(answers[question.name]), f"choose one of {', '.join(question.choices)}"
                )
        for problem in problems(answers):
            raise AnswerRefused(*problem)
        return answers


def make_environment() -> SandboxedEnvironment:
    """Return an environment whose templates have no access to Python and fail on an undefined variable."""
    # The files are Python, TOML and Markdown, in which HTML must not be escaped.
    return SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def _question(name: str, default: str | list[str]) -> Question:
    return Question(name, default) if isinstance(default, str) else Question(name, default[0], tuple(default))
