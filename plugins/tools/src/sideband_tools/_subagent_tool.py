"""The tool `subagent`: run a task in a child agent."""

from __future__ import annotations

from sideband.messages import Usage
from sideband.tools import ToolContext, ToolOutput, tool

from ._models import SubagentParams

_SECONDS = 3_600.0


@tool("subagent", timeout=_SECONDS)
async def subagent(params: SubagentParams, ctx: ToolContext) -> ToolOutput:
    """Let another agent do a task, and get its last answer.

    Use it for work that can be described in a few sentences and whose steps you do not need to see, such as a search
    through much text: only its answer takes up space in this conversation. Call it several times at once for
    independent tasks.
    """
    result = await ctx.spawn_child(params.task, tools=params.tools, share=params.share)
    answer = result.text.strip() or "(no answer)"
    return ToolOutput(
        f"{answer}\n\n[the agent {_ENDINGS.get(result.status, result.status)}; {_used(result.usage)}]",
        is_error=result.status != "completed",
        metadata={"status": result.status, "usage": result.usage.model_dump(mode="json")},
    )


_ENDINGS = {
    "completed": "completed its task",
    "aborted": "was cancelled before it completed",
    "failed": "failed before it completed",
    "parked": "reached a limit before it completed",
}


def _used(usage: Usage) -> str:
    tokens = usage.input + usage.cache_read + usage.cache_write + usage.output
    cost = "" if usage.cost is None else f", {usage.cost:.4f} US dollars"
    return f"{tokens:,} tokens{cost}"
