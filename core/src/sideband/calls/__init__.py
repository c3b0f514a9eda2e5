"""Calls of tools of skills: which skill, which rights, which worker, and what came of it."""

from ._catalog import SkillCatalog
from ._grants import RememberedGrants
from ._isolation import ChosenSandbox
from ._launches import SkillLaunches
from ._skill_calls import CallRequest, CallResult, GrantAsker, SkillCalls
from ._worker_reports import WorkerReports

__all__ = [
    "CallRequest",
    "CallResult",
    "ChosenSandbox",
    "GrantAsker",
    "RememberedGrants",
    "SkillCalls",
    "SkillCatalog",
    "SkillLaunches",
    "WorkerReports",
]
