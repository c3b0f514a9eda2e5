"""Child agents: the parent's exact prompt, model and guards, a subset of its tools, and a share of its budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self

import anyio
from attrs import define, field
from sideband.approvals import ApprovalNeeded
from sideband.broker import Redaction
from sideband.hooks import SubagentEnd, SubagentStart
from sideband.messages import Usage

from ._announcer import Announcer
from ._budget import Allowance
from ._child_sessions import ChildSession
from ._errors import DepthReached, ToolsUnknown
from ._inherited import Inherited
from ._run import RunResult, error_data, stored_result
from ._session_parts import SessionParts
from .sessions import RunEntry, Session

MOST_CHILDREN = 16
"""The maximum number of concurrent children of one agent. Further ones wait."""
_LONGEST_TEXT = 2_000
"""The maximum number of characters of a child's task or answer in an event."""


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
        announcer: emits the events of the agent.
        redactor: removes secrets from tasks and errors.
        depth: the number of agents above that agent.
        deepest: the maximum number of agents above a child.
        make: makes a child from what it inherits and the names of its tools.
    """

    announcer: Announcer = field(repr=False)
    redactor: Redaction = field(repr=False)
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
                    self.depth + 1,
                    own,
                    allowance,
                    parent.system_prompt,
                    parent.runner.current,
                    parent.approval,
                    parent.tools,
                )
                names = await own.begin(view.names)
                async with self.make(inherited, names) as child:
                    try:
                        parent.spending.charge_earlier(own.id, child.usage, child.allowance.used)
                        return await self._work(child, prompt, parent, own, names)
                    finally:
                        # the child's usage is charged to its parent however it ends
                        await parent.spending.note(child.usage, "agent", own.id)

    async def _work(
        self, child: ChildAgent, task: str, parent: SessionParts, own: ChildSession, tools: Sequence[str]
    ) -> RunResult:
        """Run a task to its end, or continue with it, between two events."""
        last = next((one for one in child.session.newest_first() if isinstance(one, RunEntry)), None)
        run = parent.runner.current
        result: RunResult | None = None
        error: Exception | None = None
        try:
            await self.announcer.emit_made(
                SubagentStart,
                lambda: SubagentStart(
                    own.id,
                    _cut(self.redactor.text(task)),
                    tools,
                    run=run.id if run else "",
                    call=own.call,
                    resumed=last is not None,
                ),
            )
            result = await (child.invoke(task, source="agent") if last is None else _continue(child, last))
        except Exception as raised:
            error = raised
            raise
        else:
            return result
        finally:
            with anyio.CancelScope(shield=True):
                await self.announcer.emit_made(SubagentEnd, lambda: self._end(child, own, result, error))

    def _end(
        self, child: ChildAgent, own: ChildSession, result: RunResult | None, error: Exception | None
    ) -> SubagentEnd:
        usage = child.usage.model_dump(mode="json", exclude_none=True)
        if result is not None:
            return SubagentEnd(own.id, result.status, _cut(result.text), usage, result.error)
        return SubagentEnd(
            own.id, "aborted" if error is None else "failed", usage=usage, error=error_data(error, self.redactor)
        )


async def _continue(child: ChildAgent, last: RunEntry) -> RunResult:
    """Continue the last run of a child, and return its result. A run that has ended is not repeated."""
    waited = last.error is not None and last.error.get("code") == ApprovalNeeded.code
    resumed = await child.resume() if waited or last.status == "started" else None
    return resumed or stored_result(child.session, last)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
