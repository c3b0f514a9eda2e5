"""The hooks that publish what happens in the host. The state of their context is the publisher."""

from __future__ import annotations

from sideband.contexts import AgentContext
from sideband.hooks import (
    AgentEnd,
    AgentError,
    AgentStart,
    ApprovalEnd,
    ApprovalStart,
    Effect,
    SessionShutdown,
    SessionStart,
    SubagentEnd,
    SubagentStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    WorkerEnd,
    WorkerStart,
    hookimpl,
)
from sideband.ops import Origin
from sideband.plugins import PluginContext

from ._publisher import Publisher


class PublishingHooks:
    """Publishes runs, sessions, child agents, tools, effects, approvals and workers."""

    @hookimpl
    def agent_start(self, event: AgentStart, ctx: AgentContext) -> None:
        """Publish that a run begins."""
        _note(ctx, event.hook, session=ctx.session.id, run=event.run)

    @hookimpl
    def agent_error(self, event: AgentError, ctx: AgentContext) -> None:
        """Publish that a run has failed."""
        _note(ctx, event.hook, session=ctx.session.id, run=event.run, code=str(event.error.get("code", "")))

    @hookimpl
    def agent_end(self, event: AgentEnd, ctx: AgentContext) -> None:
        """Publish that a run has ended."""
        _note(ctx, event.hook, session=ctx.session.id, run=event.run, status=event.reason)

    @hookimpl
    def session_start(self, event: SessionStart, ctx: AgentContext) -> None:
        """Publish that a session is open."""
        _note(ctx, event.hook, session=event.session)

    @hookimpl
    def session_shutdown(self, event: SessionShutdown, ctx: AgentContext) -> None:
        """Publish that a session is closed."""
        _note(ctx, event.hook, session=event.session)

    @hookimpl
    def subagent_start(self, event: SubagentStart, ctx: AgentContext) -> None:
        """Publish that a child begins."""
        _note(ctx, event.hook, session=event.session)

    @hookimpl
    def subagent_end(self, event: SubagentEnd, ctx: AgentContext) -> None:
        """Publish that a child has ended."""
        _note(ctx, event.hook, session=event.session, status=event.status)

    @hookimpl
    def tool_execution_start(self, event: ToolExecutionStart, ctx: AgentContext) -> None:
        """Publish that a tool runs."""
        _note(ctx, event.hook, session=ctx.session.id, tool=event.tool, call=event.id)

    @hookimpl
    def tool_execution_end(self, event: ToolExecutionEnd, ctx: AgentContext) -> None:
        """Publish that a tool has ended."""
        status = "failed" if event.is_error else "done"
        _note(ctx, event.hook, session=ctx.session.id, tool=event.tool, call=event.id, status=status, ms=event.ms)

    @hookimpl
    def effect(self, event: Effect, ctx: PluginContext) -> None:
        """Publish that an effect has ended."""
        code = str((event.error or {}).get("code", ""))
        parts = {"effect": event.effect, "op": event.op, "status": event.status, "code": code}
        _note(ctx, event.hook, ms=event.ms, **parts, **_origin(event.origin))

    @hookimpl
    def approval_start(self, event: ApprovalStart, ctx: PluginContext) -> None:
        """Publish that an approval is needed."""
        _note(ctx, event.hook, request=event.request, about=event.about, **_origin(event.origin))

    @hookimpl
    def approval_end(self, event: ApprovalEnd, ctx: PluginContext) -> None:
        """Publish how a request was answered."""
        parts = {"request": event.request, "about": event.about, "status": event.verdict}
        _note(ctx, event.hook, ms=event.ms, **parts, **_origin(event.origin))

    @hookimpl
    def worker_start(self, event: WorkerStart, ctx: PluginContext) -> None:
        """Publish that a worker accepts calls."""
        _note(ctx, event.hook, worker=event.worker, ms=event.ms)

    @hookimpl
    def worker_end(self, event: WorkerEnd, ctx: PluginContext) -> None:
        """Publish that a worker has ended."""
        _note(ctx, event.hook, worker=event.worker, status=event.status, code=event.code, ms=event.ms)


def _note(ctx: PluginContext, event: str, **parts: str | float | None) -> None:
    publisher: Publisher = ctx.state
    publisher.note(event, **parts)


def _origin(origin: Origin) -> dict[str, str | None]:
    return {"session": origin.session, "run": origin.run, "tool": origin.tool}
