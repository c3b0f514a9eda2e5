"""Calls of tools of skills: which skill, which rights, which worker, and what came of it."""

from ._catalog import SkillCatalog
from ._isolation import ChosenSandbox
from ._launches import SkillLaunches
from ._requests import CallRequest, CallResult
from ._rights import GrantAsker, Rights
from ._skill_calls import SkillCalls
from ._worker_reports import WorkerReports

__all__ = [
    "CallRequest",
    "CallResult",
    "ChosenSandbox",
    "GrantAsker",
    "Rights",
    "SkillCalls",
    "SkillCatalog",
    "SkillLaunches",
    "WorkerReports",
]
