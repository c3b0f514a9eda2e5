"""The tool `plan`, with which a model submits its plan in the mode `plan`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sideband.tools import ToolContext, tool

PLAN = "plan"
_MOST_LINES = 40  # the whole plan must fit into the question
_MOST_CHARACTERS = 3_500


def _shown_completely(text: str) -> str:
    text = text.strip()
    if not text:
        raise ValueError("the plan is empty")
    if len(text) > _MOST_CHARACTERS or text.count("\n") >= _MOST_LINES:
        raise ValueError(f"at most {_MOST_LINES} lines and {_MOST_CHARACTERS:,} characters: the user reads all of it")
    return text


class PlanParams(BaseModel):
    """The parameters of `plan`."""

    model_config = ConfigDict(extra="forbid")

    plan: Annotated[str, AfterValidator(_shown_completely)] = Field(
        description="each change that you intend to make, one a line: which file, command or request, and what for",
    )


@tool(PLAN)
async def plan(params: PlanParams, ctx: ToolContext) -> str:  # noqa: ARG001  guards and the user see them
    """Submit a plan to the user, who approves it or says what to change. Use it when changes are denied until then."""
    if ctx.approval_mode in (None, "plan"):
        return "The plan was not examined: no guard has asked the user about it."
    return f"The user has approved the plan. The approval mode is `{ctx.approval_mode}` now. Carry the plan out."
