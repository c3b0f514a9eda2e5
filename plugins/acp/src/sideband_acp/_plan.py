"""The tasks of the tool `todo` as the plan that clients show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from acp.schema import AgentPlanUpdate, PlanEntry, PlanEntryStatus
from pydantic import BaseModel, ValidationError
from sideband.rendering import render

TASKS = "tools.todo"
"""The kind of the entries in which the tool stores its list."""

_STATUSES: dict[str, PlanEntryStatus] = {"open": "pending", "active": "in_progress", "done": "completed"}


class _StoredTask(BaseModel):
    text: str
    state: Literal["open", "active", "done"]


class _StoredTasks(BaseModel):
    tasks: list[_StoredTask]


def plan_of(stored: Mapping[str, Any] | None) -> AgentPlanUpdate | None:
    """Return the plan that a stored list of tasks is, or ``None`` if there is no such list."""
    if stored is None:
        return None
    try:
        tasks = _StoredTasks.model_validate(stored).tasks
    except ValidationError:
        return None
    entries = [
        PlanEntry(content=render(one.text, prose=True), priority="medium", status=_STATUSES[one.state]) for one in tasks
    ]
    return AgentPlanUpdate(session_update="plan", entries=entries)
