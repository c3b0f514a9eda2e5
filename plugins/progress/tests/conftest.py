"""A host with this plugin."""

from types import SimpleNamespace

import pytest
import sideband_progress.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
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
async def host(tmp_path):
    vault = SimpleNamespace(sideband_ops=lambda: OpFamily(name="vault", ops=(unlock,)))
    plugins = [
        Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
        Plugin(kind="op", name="progress", value=sideband_progress.plugin),
        Plugin(kind="op", name="vault", value=vault),
    ]
    async with Host(home=tmp_path, plugins=plugins, autoload=False) as one:
        yield one
