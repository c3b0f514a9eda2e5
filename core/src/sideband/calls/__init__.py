"""Calls of skill tools: find the skill, determine its rights, start its worker, and return the result."""

from ._catalog import SkillCatalog
from ._isolation import ChosenSandbox
from ._launches import SkillLaunches
from ._requests import CallRequest, CallResult
from ._rights import Rights
from ._skill_calls import SkillCalls
from ._worker_reports import WorkerReports

__all__ = [
    "CallRequest",
    "CallResult",
    "ChosenSandbox",
    "Rights",
    "SkillCalls",
    "SkillCatalog",
    "SkillLaunches",
    "WorkerReports",
]
