"""Plugin `http`: registration, configuration and the connections of the host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._config import Config
from ._errors import ERRORS
from ._exchange._sessions import HttpSessions
from ._ops import OPS
from ._scope import HttpScope
from ._state import HttpState
from ._transport._choice import transport_named
from ._transport._connections import HttpConnections
from ._transport._trust import Trust

__all__ = ["Config", "lifespan", "sideband_ops"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[HttpState]:
    """Hold the connections open for the lifetime of the host."""
    config: Config = ctx.config
    connections = HttpConnections(
        trust=Trust(config.ca_file, config.certificates(), ctx.credential),
        max_connections=config.max_connections,
        factory=transport_named(config.transport),
        proxies=config.proxy_rules(),
        proxy_auth=config.proxy_auth,
    )
    state = HttpState(connections, HttpSessions(config.max_sessions), config.user_agent)
    try:
        yield state
    finally:
        await state.aclose()


def sideband_ops() -> OpFamily:
    """Return the op family."""
    return OpFamily(
        name="http",
        ops=OPS,
        scope=HttpScope,
        sdk=Path(__file__).with_name("_sdk.py"),
        doc="HTTP requests, sessions and downloads.",
        errors=ERRORS,
    )
