"""Child agents: the parent's exact prompt, model and guards, a subset of its tools, and a share of its budget."""

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
"""The maximum number of concurrent children of one agent. Further ones wait."""


class ChildAgent(Protocol):
    """The interface of a child that its parent uses."""

    @property
    def usage(self) -> Usage:
        """The usage of its session."""

    async def __aenter__(self) -> Self:
        """Open it."""

    async def __aexit__(self, *_: object) -> None:
        """Close it."""

    async def invoke(self, text: str, *, source: str = "interactive") -> RunResult:
        """Begin a run with an input and run it to its end."""


@define(eq=False)
class Children:
    """The children of one agent.

    Args:
        depth: the number of agents above that agent.
        deepest: the maximum number of agents above a child.
        make: makes a child from what it inherits and the names of its tools.
    """

    depth: int
    deepest: int
    make: Callable[[Inherited, Sequence[str]], ChildAgent] = field(repr=False)
    _places: anyio.Semaphore | None = field(default=None, init=False, repr=False)

    async def run(
        self, prompt: str, parent: SessionParts, *, tools: Sequence[str] | None, share: float, call: str | None
    ) -> RunResult:
        """Run a task in a child agent and wait for it. Cancelling the caller cancels the child.

        Args:
            prompt: the task.
            parent: the session parts of the parent, which must have a run in progress.
            tools: the tools that the child may call, a subset of the parent's; all of them if ``None``.
            share: the fraction of the parent's remaining budget that the child may use.
            call: the tool call of the parent that the child works for, ``session:run:step``.

        Raises:
            DepthReached: if the parent has reached the maximum depth.
            ToolsUnknown: if the parent does not have one of these tools.
        """
        if self.depth >= self.deepest:
            raise DepthReached(self.deepest)
        unknown = parent.tools.unknown(tools or ())
        if unknown:
            raise ToolsUnknown(unknown, parent.tools.names)
        view = parent.tools if tools is None else parent.tools.narrow(tools)
        if self._places is None:
            self._places = anyio.Semaphore(MOST_CHILDREN)
        async with self._places:
            with parent.spending.allowance.share(share) as allowance:
                inherited = Inherited(self.depth + 1, call, allowance, parent.system_prompt, parent.skills.tools)
                async with self.make(inherited, view.names) as child:
                    try:
                        return await child.invoke(prompt, source="agent")
                    finally:
                        # the child's usage is charged to its parent however it ends
                        await parent.spending.note(child.usage, "agent")
