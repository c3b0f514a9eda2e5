"""The templates for skills, plugins and distributions, and the command that makes projects from them."""

from ._baking import bake
from ._errors import AnswerRefused, QuestionUnknown, TargetExists, TargetUnwritable
from ._templates import TEMPLATES, Question, Template
from ._version import __version__

__all__ = [
    "TEMPLATES",
    "AnswerRefused",
    "Question",
    "QuestionUnknown",
    "TargetExists",
    "TargetUnwritable",
    "Template",
    "__version__",
    "bake",
]
