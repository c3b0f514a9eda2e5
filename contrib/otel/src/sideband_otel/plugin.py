"""The entry point of the group `sideband.v1.hook`: observes runs, effects, approvals and workers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import anyio
from sideband import hookimpl
from sideband.contexts import PluginContext
from sideband.hooks import (
    AgentEnd,
    AgentStart,
    ApprovalEnd,
    Effect,
    SubagentEnd,
    SubagentStart,
    TraceParent,
    TurnEnd,
    TurnStart,
    WorkerEnd,
    WorkerStart,
)

from ._models import Config

if TYPE_CHECKING:
    from ._telemetry import Telemetry

__all__ = ["Config", "lifespan"]

_SIGNALS = ("", "TRACES_", "METRICS_")
_SWITCHES = (
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
    *(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT" for signal in _SIGNALS),
)


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Telemetry | None]:
    """Open the SDK if telemetry is to be sent, and yield what takes the events."""
    config: Config = ctx.config
    if not _is_enabled(config, os.environ):
        yield None
        return
    for signal in _SIGNALS:
        for pair in os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}HEADERS", "").split(","):
            if value := unquote(pair.partition("=")[2].strip()):
                ctx.protect(value, "otel")
    opened = await anyio.to_thread.run_sync(_open)
    try:
        yield opened.telemetry
    finally:
        await opened.close(config.close_seconds)


def _open() -> Any:
    from ._providers import open_telemetry  # noqa: PLC0415  the SDK is slow to import

    return open_telemetry(os.environ)


def _is_enabled(config: Config, environment: Mapping[str, str]) -> bool:
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    return any(environment.get(name) for name in _SWITCHES) if config.enabled is None else config.enabled


@hookimpl
def agent_start(event: AgentStart, ctx: PluginContext) -> None:
    """Begin a run."""
    if (telemetry := _telemetry(ctx)) is not None:
        session = getattr(ctx, "session", None)
        telemetry.begin_run(event, None if session is None else session.id)


@hookimpl
def agent_end(event: AgentEnd, ctx: PluginContext) -> None:
    """End a run."""
    if (telemetry := _telemetry(ctx)) is not None:
        telemetry.end_run(event)


@hookimpl
def turn_start(event: TurnStart, ctx: PluginContext) -> None:
    """Begin a turn."""
    if (telemetry := _telemetry(ctx)) is not None:
        telemetry.begin_turn(event)


@hookimpl
def turn_end(event: TurnEnd, ctx: PluginContext) -> None:
    """End a turn."""
    if (telemetry := _telemetry(ctx)) is not None:
        telemetry.end_turn(event)


@hookimpl
def subagent_start(event: SubagentStart, ctx: PluginContext) -> None:
    """Begin a child agent."""
    if (telemetry := _telemetry(ctx)) is not None:
        telemetry.begin_child(event)


@hookimpl
def subagent_end(event: SubagentEnd, ctx: PluginContext) -> None:
    """End a child agent."""
    if (telemetry := _telemetry(ctx)) is not None:
        telemetry.end_child(event)


@hookimpl
def effect(event: Effect, ctx: PluginContext) -> None:
    """Take an effect."""
    if (telemetry := _telemetry(ctx)) is not None:
        telemetry.effect(event)


@hookimpl
def approval_end(event: ApprovalEnd, ctx: PluginContext) -> None:
    """Take an answer to a request for approval."""
    if (telemetry := _telemetry(ctx)) is not None:
        telemetry.end_approval(event)


@hookimpl
def worker_start(event: WorkerStart, ctx: PluginContext) -> None:
    """Take the start of a worker."""
    if (telemetry := _telemetry(ctx)) is not None:
        telemetry.begin_worker(event)


@hookimpl
def worker_end(event: WorkerEnd, ctx: PluginContext) -> None:
    """Take the end of a worker."""
    if (telemetry := _telemetry(ctx)) is not None:
        telemetry.end_worker(event)


@hookimpl
def trace_parent(event: TraceParent, ctx: PluginContext) -> list[str]:
    """Return the trace context of an effect."""
    telemetry = _telemetry(ctx)
    return [] if telemetry is None else [telemetry.trace_parent(event)]


def _telemetry(ctx: PluginContext) -> Telemetry | None:
    found: Telemetry | None = ctx.state
    return found
