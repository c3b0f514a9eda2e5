"""The configuration of the guard."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from sideband.contexts import ApprovalMode


class Config(BaseModel):
    """The table ``[plugins.approval]``.

    Example:
        >>> Config(mode="semi").after_plan
        'assist'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: ApprovalMode | None = Field(
        default=None,
        description="the mode of sessions for which the user selected none, and of calls without an agent; if omitted, "
        "`assist` for agents at a terminal, and `full` elsewhere",
    )
    after_plan: Literal["manual", "assist", "semi", "full"] = Field(
        default="assist", description="the mode that follows an approved plan"
    )
