"""The guard that limits the run of a command to the tools that its file allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sideband.contexts import AgentContext
from sideband.hooks import Deny, ToolCall, hookimpl

from ._tool_limits import LIMIT_KIND, is_allowed


class CommandGuard:
    """Denies calls of other tools in the run of a command with ``allowed-tools``.

    The limit is stored in the session, so that it holds when the run is resumed. It ends with the run.
    """

    def __init__(self) -> None:
        self._run = ""
        self._limit: Mapping[str, Any] | None = None

    @hookimpl
    def tool_call(self, event: ToolCall, ctx: AgentContext) -> Deny | None:
        """Deny a call of a tool that the command does not allow."""
        if not hasattr(ctx, "run"):
            return None  # a call outside of an agent belongs to no run
        if ctx.run != self._run:
            stored = ctx.session.last_custom(LIMIT_KIND)
            self._limit = stored if stored is not None and stored.get("run") == ctx.run else None
            self._run = ctx.run
        if self._limit is None or is_allowed(self._limit["tools"], event.tool, event.arguments):
            return None
        tools = ", ".join(self._limit["tools"]) or "none"
        return Deny(f"the command /{self._limit['command']} allows these tools only: {tools}")
