"""The tool `subagent`: a task for a child agent."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from sideband.messages import Usage
from sideband.tools import ToolContext, ToolOutput, tool

__all__ = ["subagent"]

_SECONDS = 3_600.0


class SubagentParams(BaseModel):
    """A task."""

    model_config = ConfigDict(extra="forbid")

    task: str = Field(
        min_length=1,
        description="The task, with everything that is needed to do it: the agent sees nothing of this conversation. "
        "Say what to answer, and how.",
    )
    tools: list[str] | None = Field(
        default=None,
        description="The names of the tools that it may call, each of them one of yours; a trailing * stands for the "
        "rest of a name. All of yours if not given; none if empty.",
    )
    share: float = Field(
        default=0.5, gt=0, le=1, description="How much of what is left of your budget it may use, such as 0.25."
    )


@tool("subagent", timeout=_SECONDS)
async def subagent(params: SubagentParams, ctx: ToolContext) -> ToolOutput:
    """Let another agent do a task, and get its last answer.

    Use it for work that can be told in a few sentences and whose steps you need not see, such as searching through
    much text: only its answer takes room in this conversation. Call it several times at once for tasks that do not
    depend on one another.
    """
    result = await ctx.spawn_child(params.task, tools=params.tools, share=params.share)
    answer = result.text.strip() or "(it said nothing)"
    return ToolOutput(
        f"{answer}\n\n[the agent {_ENDINGS.get(result.status, result.status)}; {_used(result.usage)}]",
        is_error=result.status != "completed",
        metadata={"status": result.status, "usage": result.usage.model_dump(mode="json")},
    )


_ENDINGS = {
    "completed": "has done its task",
    "aborted": "was stopped before it was done",
    "failed": "failed before it was done",
    "parked": "reached a limit before it was done",
}


def _used(usage: Usage) -> str:
    tokens = usage.input + usage.cache_read + usage.cache_write + usage.output
    cost = "" if usage.cost is None else f", {usage.cost:.4f} US dollars"
    return f"{tokens:,} tokens{cost}"
