"""The entry point of the group `sideband.v1.hook`: observes runs, effects, approvals and workers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from sideband.contexts import PluginContext

from ._headers import secrets_of
from ._models import Config
from ._observer import Observer

__all__ = ["Config", "lifespan", "sideband_hooks"]

_SWITCHES = (
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
    *(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT" for signal in ("", "TRACES_", "METRICS_")),
)


def sideband_hooks(config: Config) -> Observer | None:
    """Return the hooks, if telemetry is to be sent."""
    return Observer() if _is_enabled(config) else None


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Any]:
    """Open the SDK, if telemetry is to be sent, and yield what takes the events."""
    config: Config = ctx.config
    if not _is_enabled(config):
        yield None
        return
    for secret in secrets_of(os.environ):
        ctx.protect(secret, "otel")
    opened = await anyio.to_thread.run_sync(_open)
    try:
        yield opened.telemetry
    finally:
        await opened.close(config.close_seconds)


def _open() -> Any:
    from ._providers import open_telemetry  # noqa: PLC0415  the SDK is slow to import

    return open_telemetry(os.environ)


def _is_enabled(config: Config) -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if config.enabled is not None:
        return config.enabled
    values = [value.strip() for name in _SWITCHES for value in os.environ.get(name, "").split(",")]
    return any(value not in ("", "none") for value in values)
