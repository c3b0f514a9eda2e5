"""Child agents: the same prompt and model to the byte, fewer tools, the same guards, and a share of the budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self

import anyio
from attrs import define, field
from sideband.messages import Usage

from ._errors import DepthReached, ToolsUnknown
from ._inherited import Inherited
from ._run import RunResult
from ._session_parts import SessionParts

MOST_CHILDREN = 16
"""How many children of one agent work at the same time. Others wait for their turn."""


class ChildAgent(Protocol):
    """An agent as its parent uses it."""

    @property
    def usage(self) -> Usage:
        """What it has used."""

    async def __aenter__(self) -> Self:
        """Open it."""

    async def __aexit__(self, *_: object) -> None:
        """Close it."""

    async def invoke(self, text: str, *, source: str = "interactive") -> RunResult:
        """Begin a run, and see it through."""


@define(eq=False)
class Children:
    """The children of one agent.

    Args:
        depth: how many agents stand above that agent.
        deepest: how many may stand above one.
        make: makes a child, of what it inherits and the names of the tools that it may call.
    """

    depth: int
    deepest: int
    make: Callable[[Inherited, Sequence[str]], ChildAgent] = field(repr=False)
    _places: anyio.Semaphore = field(factory=lambda: anyio.Semaphore(MOST_CHILDREN), init=False, repr=False)

    async def run(
        self, prompt: str, parent: SessionParts, *, tools: Sequence[str] | None, share: float, call: str | None
    ) -> RunResult:
        """Let a child do a task, and wait for it; it is cancelled with whoever waits.

        Args:
            prompt: the task.
            parent: what the parent works with; it must have a run under way.
            tools: the tools that the child may call, of those that the parent may; ``None`` for all of them.
            share: how much of what is left of the parent's budget it may use.
            call: the tool call of the parent that it is done for, ``session:run:step``.

        Raises:
            DepthReached: the parent is as deep as agents may be.
            ToolsUnknown: the parent may not call a tool of these names.
        """
        if self.depth >= self.deepest:
            raise DepthReached(self.deepest)
        unknown = parent.tools.unknown(tools or ())
        if unknown:
            raise ToolsUnknown(unknown, parent.tools.names)
        view = parent.tools if tools is None else parent.tools.narrow(tools)
        async with self._places:
            with parent.spending.allowance.share(share) as allowance:
                inherited = Inherited(self.depth + 1, call, allowance, parent.system_prompt, parent.skills.tools)
                async with self.make(inherited, view.names) as child:
                    try:
                        return await child.invoke(prompt, source="agent")
                    finally:
                        # What a child used was its parent's, whichever way it ends.
                        await parent.spending.note(child.usage, "agent")
