"""The op family `http`: registration, configuration and the connections of the host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._ops import OPS
from ._scope import HttpScope
from ._state import HttpState
from ._transport_choice import TransportName, transport_named
from ._version import __version__

__all__ = ["Config", "lifespan", "sideband_ops"]


class Config(BaseModel):
    """The table ``[plugins.http]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user_agent: str = Field(
        default=f"sideband/{__version__}",
        pattern=r"^[!-~]([ -~]*[!-~])?$",
        description="What requests call themselves unless they set `user-agent`.",
    )
    ca_file: Path | None = Field(
        default=None, description="Certificate authorities in PEM form that are trusted besides the public ones."
    )
    max_connections: int = Field(
        default=100, ge=1, le=10_000, description="Connections open at once, shared and in each session."
    )
    transport: TransportName = Field(
        default="auto",
        description="What carries requests: `httpx`; `aiohttp`, which is faster, for HTTP/1.1 on asyncio; or `auto`: "
        "aiohttp where it is installed and HTTP/2 can't be agreed on, else httpx.",
    )
    max_sessions: int = Field(default=64, ge=1, le=10_000, description="Sessions that a skill may have open at once.")


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[HttpState]:
    """Keep connections for as long as the host lives."""
    config: Config = ctx.config
    state = HttpState.create(
        user_agent=config.user_agent,
        ca_file=config.ca_file,
        max_connections=config.max_connections,
        factory=transport_named(config.transport),
        max_sessions=config.max_sessions,
    )
    try:
        yield state
    finally:
        await state.aclose()


def sideband_ops() -> OpFamily:
    """The ops of this family."""
    return OpFamily(
        name="http",
        ops=OPS,
        scope=HttpScope,
        sdk=Path(__file__).with_name("_sdk.py"),
        doc="HTTP requests, sessions and downloads.",
    )
