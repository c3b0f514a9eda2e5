"""The entry point of the group `sideband.v1.hook`: publishes what happens in the host, if `publish` is set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

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

from ._models import Config
from ._publisher import Publisher, publishing

__all__ = [
    "Config",
    "agent_end",
    "agent_error",
    "agent_start",
    "approval_end",
    "approval_start",
    "effect",
    "lifespan",
    "session_shutdown",
    "session_start",
    "subagent_end",
    "subagent_start",
    "tool_execution_end",
    "tool_execution_start",
    "worker_end",
    "worker_start",
]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Publisher | None]:
    """Yield a publisher, or ``None`` if nothing is published."""
    if not ctx.config.publish:
        yield None
        return
    async with publishing(ctx.config) as publisher:
        yield publisher


@hookimpl
def agent_start(event: AgentStart, ctx: AgentContext) -> None:
    """Publish that a run begins."""
    _note(ctx, event.hook, session=ctx.session.id, run=event.run)


@hookimpl
def agent_error(event: AgentError, ctx: AgentContext) -> None:
    """Publish that a run has failed."""
    _note(ctx, event.hook, session=ctx.session.id, run=event.run, code=str(event.error.get("code", "")))


@hookimpl
def agent_end(event: AgentEnd, ctx: AgentContext) -> None:
    """Publish that a run has ended."""
    _note(ctx, event.hook, session=ctx.session.id, run=event.run, status=event.reason)


@hookimpl
def session_start(event: SessionStart, ctx: AgentContext) -> None:
    """Publish that a session is open."""
    _note(ctx, event.hook, session=event.session)


@hookimpl
def session_shutdown(event: SessionShutdown, ctx: AgentContext) -> None:
    """Publish that a session is closed."""
    _note(ctx, event.hook, session=event.session)


@hookimpl
def subagent_start(event: SubagentStart, ctx: AgentContext) -> None:
    """Publish that a child begins."""
    _note(ctx, event.hook, session=event.session)


@hookimpl
def subagent_end(event: SubagentEnd, ctx: AgentContext) -> None:
    """Publish that a child has ended."""
    _note(ctx, event.hook, session=event.session, status=event.status)


@hookimpl
def tool_execution_start(event: ToolExecutionStart, ctx: AgentContext) -> None:
    """Publish that a tool runs."""
    _note(ctx, event.hook, session=ctx.session.id, tool=event.tool, call=event.id)


@hookimpl
def tool_execution_end(event: ToolExecutionEnd, ctx: AgentContext) -> None:
    """Publish that a tool has ended."""
    status = "failed" if event.is_error else "done"
    _note(ctx, event.hook, session=ctx.session.id, tool=event.tool, call=event.id, status=status, ms=event.ms)


@hookimpl
def effect(event: Effect, ctx: PluginContext) -> None:
    """Publish that an effect has ended."""
    code = str((event.error or {}).get("code", ""))
    parts = {"effect": event.effect, "op": event.op, "status": event.status, "code": code}
    _note(ctx, event.hook, ms=event.ms, **parts, **_origin(event.origin))


@hookimpl
def approval_start(event: ApprovalStart, ctx: PluginContext) -> None:
    """Publish that an approval is needed."""
    _note(ctx, event.hook, request=event.request, about=event.about, **_origin(event.origin))


@hookimpl
def approval_end(event: ApprovalEnd, ctx: PluginContext) -> None:
    """Publish how a request was answered."""
    parts = {"request": event.request, "about": event.about, "status": event.verdict}
    _note(ctx, event.hook, ms=event.ms, **parts, **_origin(event.origin))


@hookimpl
def worker_start(event: WorkerStart, ctx: PluginContext) -> None:
    """Publish that a worker accepts calls."""
    _note(ctx, event.hook, worker=event.worker, ms=event.ms)


@hookimpl
def worker_end(event: WorkerEnd, ctx: PluginContext) -> None:
    """Publish that a worker has ended."""
    _note(ctx, event.hook, worker=event.worker, status=event.status, code=event.code, ms=event.ms)


def _note(ctx: PluginContext, event: str, **parts: str | float | None) -> None:
    publisher: Publisher | None = ctx.state
    if publisher is not None:
        publisher.note(event, **parts)


def _origin(origin: Origin) -> dict[str, str | None]:
    return {"session": origin.session, "run": origin.run, "tool": origin.tool}
