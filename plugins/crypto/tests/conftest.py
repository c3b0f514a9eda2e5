"""A host with this plugin, an in-memory store of secrets, and its own home directory."""

import pytest
import sideband_crypto.plugin
import sideband_secrets.plugin
from sideband import Plugin


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def settings():
    return {}


@pytest.fixture
def more_plugins():
    return []


@pytest.fixture
async def host(sideband_host, settings, more_plugins, anyio_backend):
    plugins = [
        *more_plugins,
        Plugin("op", "crypto", sideband_crypto.plugin),
        Plugin("op", "secrets", sideband_secrets.plugin),
    ]
    tables = {"crypto": settings, "secrets": {"backend": "memory"}}
    async with sideband_host(*plugins, settings={"plugins": tables}) as host:
        yield host


@pytest.fixture
def crypto(host):
    """Return a function that runs an op of the family: ``await crypto("hash", data="…")``."""

    async def run(verb, *, grants=None, **params):
        return await host.op(f"crypto.{verb}", params, **({} if grants is None else {"grants": grants}))

    return run


@pytest.fixture
def store(host):
    """Return a function that stores a secret which the named ops may use as their key."""

    async def keep(name, value, *verbs):
        origins = [f"op://crypto.{verb}" for verb in verbs]
        await host.op("secrets.set", {"name": name, "value": value, "origins": origins})

    return keep
