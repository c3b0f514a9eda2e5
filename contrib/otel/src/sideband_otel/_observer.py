"""The hooks that take the events. The state of their context is the open telemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sideband import hookimpl
from sideband.contexts import PluginContext
from sideband.hooks import (
    AgentEnd,
    AgentError,
    AgentStart,
    ApprovalEnd,
    Effect,
    SubagentEnd,
    SubagentStart,
    TraceParent,
    TurnStart,
    WorkerEnd,
    WorkerStart,
)

if TYPE_CHECKING:
    from ._telemetry import Telemetry


class Observer:
    """Observes runs, turns, effects, child agents, approvals and workers."""

    @hookimpl
    def agent_start(self, event: AgentStart, ctx: PluginContext) -> None:
        """Begin a run."""
        session = getattr(ctx, "session", None)
        _telemetry(ctx).begin_run(event, None if session is None else session.id)

    @hookimpl
    def agent_error(self, event: AgentError, ctx: PluginContext) -> None:
        """Take the error of a run."""
        _telemetry(ctx).fail_run(event)

    @hookimpl
    def agent_end(self, event: AgentEnd, ctx: PluginContext) -> None:
        """End a run."""
        _telemetry(ctx).end_run(event)

    @hookimpl
    def turn_start(self, event: TurnStart, ctx: PluginContext) -> None:
        """End the turn before, if there is one, and begin a turn.

        The event of the end would be made of all its messages, which nothing else needs.
        """
        _telemetry(ctx).begin_turn(event)

    @hookimpl
    def subagent_start(self, event: SubagentStart, ctx: PluginContext) -> None:
        """Begin a child agent."""
        _telemetry(ctx).begin_child(event)

    @hookimpl
    def subagent_end(self, event: SubagentEnd, ctx: PluginContext) -> None:
        """End a child agent."""
        _telemetry(ctx).end_child(event)

    @hookimpl
    def effect(self, event: Effect, ctx: PluginContext) -> None:
        """Take an effect."""
        _telemetry(ctx).effect(event)

    @hookimpl
    def approval_end(self, event: ApprovalEnd, ctx: PluginContext) -> None:
        """Take an answer to a request for approval."""
        _telemetry(ctx).end_approval(event)

    @hookimpl
    def worker_start(self, event: WorkerStart, ctx: PluginContext) -> None:
        """Take the start of a worker."""
        _telemetry(ctx).begin_worker(event)

    @hookimpl
    def worker_end(self, event: WorkerEnd, ctx: PluginContext) -> None:
        """Take the end of a worker."""
        _telemetry(ctx).end_worker(event)

    @hookimpl
    def trace_parent(self, event: TraceParent, ctx: PluginContext) -> list[str]:
        """Return the trace context of an effect."""
        return [_telemetry(ctx).trace_parent(event)]


def _telemetry(ctx: PluginContext) -> Telemetry:
    telemetry: Telemetry = ctx.state
    return telemetry
