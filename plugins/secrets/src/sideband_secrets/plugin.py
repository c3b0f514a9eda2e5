"""The entry point of the group `sideband.v1.op`: registers the family `secrets`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._config import Config
from ._errors import ERRORS
from ._ops import (
    delete_secret,
    list_secrets,
    read_binary_secret,
    read_secret,
    rekey_secrets,
    roll_back_secret,
    rotate_secret,
    set_secret,
)
from ._resolver import SecretResolver
from ._scope import SecretsScope
from ._source import StoredSecrets
from ._state import Secrets

__all__ = ["Config", "lifespan", "sideband_ops", "sideband_secret_sources"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Secrets]:
    """Hold the secrets for the lifetime of the host. The first op opens the store and reports its errors."""
    secrets = Secrets(ctx.config, ctx.home, ctx)
    await secrets.start()
    try:
        yield secrets
    finally:
        await secrets.aclose()


def sideband_secret_sources() -> list[StoredSecrets]:
    """Return the source of all values, which the host opens before its first effect."""
    return [StoredSecrets()]


def sideband_ops() -> OpFamily:
    """Return the op family and its credential resolver."""
    return OpFamily(
        name="secrets",
        ops=(
            set_secret,
            list_secrets,
            delete_secret,
            read_secret,
            read_binary_secret,
            rotate_secret,
            roll_back_secret,
            rekey_secrets,
        ),
        scope=SecretsScope,
        credentials=SecretResolver(),
        doc="Credentials that skills can use for their origins, and read only if granted.",
        errors=ERRORS,
    )
