"""Child agents: the same prompt and model to the byte, fewer tools, the same guards, and a share of the budget."""

from __future__ import annotations

from collections.abc import Sequence

from ._agent import Agent
from ._errors import DepthReached, ToolsUnknown
from ._memory_store import MemoryStore
from ._run import RunResult
from ._session_parts import Lineage
from .sessions import Sessions

__all__ = ["run_child"]


async def run_child(
    parent: Agent, prompt: str, *, tools: Sequence[str] | None, share: float, call: str | None = None
) -> RunResult:
    """Let a child of ``parent`` do a task, and wait for it; it is cancelled with whoever waits.

    Args:
        parent: must have a run under way.
        prompt: the task.
        tools: the tools that it may call, of those that the parent may; ``None`` for all of them.
        share: how much of what is left of the parent's budget it may use.
        call: the tool call of the parent that it is done for, ``session:run:step``.

    Raises:
        DepthReached: the parent is as deep as agents may be.
        ToolsUnknown: the parent may not call a tool of these names.
    """
    if parent.depth >= parent.settings.depth:
        raise DepthReached(parent.settings.depth)
    view = parent.tools if tools is None else parent.tools.narrow(tools)
    unknown = parent.tools.unknown(tools or ())
    if unknown:
        raise ToolsUnknown(unknown, parent.tools.names)
    async with parent.places_for_children:
        return await _run(parent, prompt, view.names, share, call)


async def _run(parent: Agent, prompt: str, tools: Sequence[str], share: float, call: str | None) -> RunResult:
    with parent.allowance.share(share) as allowance:
        child = Agent(
            parent.host,
            model=parent.model,
            tools=tools,
            channel=parent.channel,
            approver=parent.approver,
            guards=parent.guards,
            folder=parent.folder,
        )
        child.lineage = Lineage(parent.depth + 1, call, allowance, parent.system_prompt, parent.offered)
        child.store = MemoryStore()
        child.sessions = Sessions(child.store, parent.host.home, redact=parent.host.redactor.text)
        async with child:
            try:
                return await child.invoke(prompt, source="agent")
            finally:
                # What a child used was its parent's, whichever way it ends.
                await parent.note_usage(child.usage, "agent")
