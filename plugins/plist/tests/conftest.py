"""A host with this plugin and its own home directory."""

import pytest
import sideband_plist.plugin
from sideband import Plugin


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def settings():
    return {}


@pytest.fixture
async def host(sideband_host, settings, anyio_backend):
    plugin = Plugin("op", "plist", sideband_plist.plugin)
    async with sideband_host(plugin, settings={"plugins": {"plist": settings}}) as host:
        yield host


@pytest.fixture
def parse(host):
    async def run(data, **more):
        return await host.op("plist.parse", {"data": data, **more})

    return run


@pytest.fixture
def dump(host):
    async def run(value, **more):
        return await host.op("plist.dump", {"value": value, **more})

    return run
