"""The guard: asks the counters before a call, and feeds them after it."""

from __future__ import annotations

from enum import Enum

from sideband.hooks import AgentStart, Deny, Patch, ToolCall, ToolResult, hookimpl
from sideband.plugins import AgentContext, PluginContext

from ._config import Config
from ._counters import Counters
from ._recent import Recent

_MOST_CALLS = 1_024


class LoopGuard:
    """Counts within one run of one agent.

    A call that it refuses counts as a failure of the tool. So whoever repeats a refused call without end comes to the
    number of failures that ends the run, instead of paying for turns in which nothing happens.
    """

    def __init__(self) -> None:
        self._counters = Counters()
        self._calls: Recent[str, _CallState] = Recent(_MOST_CALLS)

    @hookimpl
    def agent_start(self, event: AgentStart) -> None:  # noqa: ARG002  the hook's name for it
        """Forget the run before."""
        self._counters = Counters()

    @hookimpl
    def tool_call(self, event: ToolCall, ctx: PluginContext) -> Deny | None:
        """Refuse what has failed, or has told the same, too often."""
        limits: Config = ctx.config
        seen = self._counters.seen(event.tool, event.arguments)
        if _reached(seen.tool, limits.same_tool_failure_halt):
            return Deny(
                f"same_tool_failure_halt: `{event.tool}` failed, or was refused, {seen.tool} times in this run and did "
                f"not succeed once in between, so the run ends; find out why it fails before you let it go on",
                halt=True,
            )
        if _reached(seen.exact, limits.repeated_exact_failure_block):
            return self._refuse(
                event,
                f"repeated_exact_failure_block: `{event.tool}` failed {seen.exact} times with exactly these arguments; "
                f"change them, use another tool, or tell the user what is in the way",
            )
        if _reached(seen.unchanged, limits.idempotent_no_progress_block):
            return self._refuse(
                event,
                f"idempotent_no_progress_block: `{event.tool}` had the same result {seen.unchanged} times with exactly "
                f"these arguments; use what it said, or do something else first",
            )
        self._calls.put(event.id, _CallState.READING if event.read_only else _CallState.CHANGING)
        return None

    @hookimpl
    def tool_result(self, event: ToolResult, ctx: AgentContext) -> Patch | None:
        """Count how it went, and tell the model when it begins to repeat itself."""
        limits: Config = ctx.config
        call = self._calls.pop(event.id, _CallState.REJECTED)
        if call is _CallState.REFUSED:  # counted when it was refused
            return None
        if event.is_error:
            patch = self._failed(event, limits)
            failures = self._counters.seen(event.tool, event.arguments).tool
            if call is _CallState.REJECTED and _reached(failures, limits.same_tool_failure_halt):
                # Nobody asks about calls that can't be run as they are written, so there is no call to refuse.
                ctx.abort(
                    f"same_tool_failure_halt: `{event.tool}` failed {failures} times in this run, and the last call "
                    f"could not be run as it was written"
                )
            return patch
        seen = self._counters.succeeded(
            event.tool, event.arguments, event.content, read_only=call is _CallState.READING
        )
        if not _reached(seen.unchanged, limits.idempotent_no_progress_warning):
            return None
        return Patch(
            note=f"idempotent_no_progress_warning: `{event.tool}` had this result {seen.unchanged} times in a row with "
            f"exactly these arguments; nothing changes by asking again"
        )

    def _failed(self, event: ToolResult, limits: Config) -> Patch | None:
        seen = self._counters.failed(event.tool, event.arguments)
        if _reached(seen.exact, limits.repeated_exact_failure_warning):
            return Patch(
                note=f"repeated_exact_failure_warning: `{event.tool}` failed {seen.exact} times with exactly these "
                f"arguments; the same call is likely to fail again, so change something"
            )
        if _reached(seen.tool, limits.same_tool_failure_warning):
            return Patch(
                note=f"same_tool_failure_warning: `{event.tool}` failed {seen.tool} times in a row, with different "
                f"arguments; read its errors, and consider another way"
            )
        return None

    def _refuse(self, event: ToolCall, reason: str) -> Deny:
        self._counters.refused(event.tool)
        self._calls.put(event.id, _CallState.REFUSED)
        return Deny(reason)


class _CallState(Enum):
    """What became of a call whose result may still come."""

    READING = "reading"
    CHANGING = "changing"
    REFUSED = "refused"
    REJECTED = "rejected"


def _reached(count: int, threshold: int) -> bool:
    return 0 < threshold <= count
