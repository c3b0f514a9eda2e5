"""The guard: checks the counters before a call and updates them after it."""

from __future__ import annotations

from enum import Enum

from sideband.hooks import AgentStart, Deny, Patch, ToolCall, ToolResult, hookimpl
from sideband.plugins import AgentContext, PluginContext

from ._config import Config
from ._counters import Counters
from ._recent import Recent

_MAX_CALLS = 1_024


class LoopGuard:
    """A guard that counts within one run of one agent.

    A denied call counts as a failure of the tool. A model that repeats a denied call therefore reaches the limit that
    ends the run, instead of paying for turns without effect.
    """

    def __init__(self) -> None:
        self._counters = Counters()
        self._calls: Recent[str, _CallState] = Recent(_MAX_CALLS)

    @hookimpl
    def agent_start(self, event: AgentStart) -> None:  # noqa: ARG002  required by the hook
        """Reset the counters."""
        self._counters = Counters()

    @hookimpl
    def tool_call(self, event: ToolCall, ctx: PluginContext) -> Deny | None:
        """Deny a call that failed, or returned the same result, too often."""
        limits: Config = ctx.config
        seen = self._counters.seen(event.tool, event.arguments)
        if _reached(seen.tool, limits.same_tool_failure_halt):
            return Deny(
                f"same_tool_failure_halt: `{event.tool}` failed or was denied {seen.tool} times in this run without a "
                f"success, so the run ends; find out why it fails before you continue",
                halt=True,
            )
        if _reached(seen.exact, limits.repeated_exact_failure_block):
            return self._deny(
                event,
                f"repeated_exact_failure_block: `{event.tool}` failed {seen.exact} times with these exact arguments; "
                f"change them, use another tool, or report the problem to the user",
            )
        if _reached(seen.unchanged, limits.idempotent_no_progress_block):
            return self._deny(
                event,
                f"idempotent_no_progress_block: `{event.tool}` returned the same result {seen.unchanged} times with "
                f"these exact arguments; use that result, or do something else first",
            )
        self._calls.put(event.id, _CallState.READING if event.read_only else _CallState.CHANGING)
        return None

    @hookimpl
    def tool_result(self, event: ToolResult, ctx: AgentContext) -> Patch | None:
        """Count the outcome, and warn the model when it begins to repeat itself."""
        limits: Config = ctx.config
        call = self._calls.pop(event.id, _CallState.REJECTED)
        if call is _CallState.DENIED:  # counted when it was denied
            return None
        if event.is_error:
            patch = self._failed(event, limits)
            failures = self._counters.seen(event.tool, event.arguments).tool
            if call is _CallState.REJECTED and _reached(failures, limits.same_tool_failure_halt):
                # guards are not asked about calls that cannot be run, so there is no call to deny
                ctx.abort(
                    f"same_tool_failure_halt: `{event.tool}` failed {failures} times in this run, and the last call "
                    f"was invalid"
                )
            return patch
        seen = self._counters.succeeded(
            event.tool, event.arguments, event.content, read_only=call is _CallState.READING
        )
        if not _reached(seen.unchanged, limits.idempotent_no_progress_warning):
            return None
        return Patch(
            note=f"idempotent_no_progress_warning: `{event.tool}` returned this result {seen.unchanged} times in a row "
            f"with these exact arguments; repeating the call will not change it"
        )

    def _failed(self, event: ToolResult, limits: Config) -> Patch | None:
        seen = self._counters.failed(event.tool, event.arguments)
        if _reached(seen.exact, limits.repeated_exact_failure_warning):
            return Patch(
                note=f"repeated_exact_failure_warning: `{event.tool}` failed {seen.exact} times with these exact "
                f"arguments; the same call is likely to fail again, so change something"
            )
        if _reached(seen.tool, limits.same_tool_failure_warning):
            return Patch(
                note=f"same_tool_failure_warning: `{event.tool}` failed {seen.tool} times in a row with different "
                f"arguments; read its errors, and consider another approach"
            )
        return None

    def _deny(self, event: ToolCall, reason: str) -> Deny:
        self._counters.refused(event.tool)
        self._calls.put(event.id, _CallState.DENIED)
        return Deny(reason)


class _CallState(Enum):
    """The state of a call whose result may still arrive."""

    READING = "reading"
    CHANGING = "changing"
    DENIED = "denied"
    REJECTED = "rejected"


def _reached(count: int, threshold: int) -> bool:
    return 0 < threshold <= count
