"""A host with this plugin."""

from types import SimpleNamespace

import pytest
import sideband_progress.plugin
from pydantic import BaseModel
from sideband import Plugin
from sideband.ops import Level, OpFamily, op

CANARY = "s3cr3t-canary-value"


class Nothing(BaseModel):
    pass


@op("vault.open", level=Level.SAFE)
async def unlock(params: Nothing, ctx) -> None:
    """Register the canary as a secret."""
    ctx.protect(CANARY, "canary")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def canary():
    return CANARY


@pytest.fixture
async def host(sideband_host):
    vault = SimpleNamespace(sideband_ops=lambda: OpFamily(name="vault", ops=(unlock,)))
    async with sideband_host(Plugin("op", "progress", sideband_progress.plugin), Plugin("op", "vault", vault)) as one:
        yield one
