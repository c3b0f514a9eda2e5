"""The tool `subagent`: a task for a child agent."""

from __future__ import annotations

from sideband.messages import Usage
from sideband.tools import ToolContext, ToolOutput, tool

from ._models import SubagentParams

_SECONDS = 3_600.0


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
