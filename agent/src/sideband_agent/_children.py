"""Child agents: the parent's exact prompt, model and guards, a subset of its tools, and a share of its budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self

import anyio
from attrs import define, field
from sideband.approvals import ApprovalNeeded
from sideband.messages import Usage

from ._budget import Allowance
from ._child_sessions import ChildSession
from ._errors import DepthReached, ToolsUnknown
from ._inherited import Inherited
from ._run import RunResult, stored_result
from ._session_parts import SessionParts
from .sessions import RunEntry, Session

MOST_CHILDREN = 16
"""The maximum number of concurrent children of one agent. Further ones wait."""


class ChildAgent(Protocol):
    """The interface of a child that its parent uses."""

    @property
    def session(self) -> Session:
        """Its session."""

    @property
    def usage(self) -> Usage:
        """The usage of its session."""

    @property
    def allowance(self) -> Allowance:
        """Its share of its parent's budget."""

    async def __aenter__(self) -> Self:
        """Open it."""

    async def __aexit__(self, *_: object) -> None:
        """Close it."""

    async def invoke(self, text: str, *, source: str = "interactive") -> RunResult:
        """Begin a run with an input and run it to its end."""

    async def resume(self) -> RunResult | None:
        """Continue the last run."""


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
        self, prompt: str, parent: SessionParts, *, tools: Sequence[str] | None, share: float, own: ChildSession
    ) -> RunResult:
        """Run a task in a child agent and wait for it. Cancelling the caller cancels the child.

        Args:
            prompt: the task.
            parent: the session parts of the parent, which must have a run in progress.
            tools: the tools that the child may call, a subset of the parent's; all of them if ``None``.
            share: the fraction of the parent's remaining budget that the child may use.
            own: the child's session, from which it continues if it was interrupted.

        Raises:
            DepthReached: if the parent has reached the maximum depth.
            ToolsUnknown: if the parent does not have one of these tools.
        """
        if self.depth >= self.deepest:
            raise DepthReached(self.deepest)
        allowed = parent.tools.allowed
        unknown = allowed.unknown(tools or ())
        if unknown:
            raise ToolsUnknown(unknown, allowed.names)
        view = allowed if tools is None else allowed.narrow(tools)
        if self._places is None:
            self._places = anyio.Semaphore(MOST_CHILDREN)
        async with self._places:
            with parent.spending.allowance.share(share) as allowance:
                inherited = Inherited(
                    self.depth + 1, own, allowance, parent.system_prompt, parent.runner.current, parent.tools
                )
                async with self.make(inherited, await own.begin(view.names)) as child:
                    try:
                        parent.spending.charge_earlier(own.id, child.usage, child.allowance.used)
                        return await _work(child, prompt)
                    finally:
                        # the child's usage is charged to its parent however it ends
                        await parent.spending.note(child.usage, "agent", own.id)


async def _work(child: ChildAgent, task: str) -> RunResult:
    """Run a task to its end, or continue with it, and return the result. A run that has ended is not repeated."""
    last = next((one for one in child.session.newest_first() if isinstance(one, RunEntry)), None)
    if last is None:
        return await child.invoke(task, source="agent")
    waited = last.error is not None and last.error.get("code") == ApprovalNeeded.code
    resumed = await child.resume() if waited or last.status == "started" else None
    return resumed or stored_result(child.session, last)
