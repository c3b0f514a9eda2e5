"""A host with this plugin and its own home directory."""

import pytest
import sideband_plist.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def settings():
    return {}


@pytest.fixture
async def host(tmp_path, settings, anyio_backend):
    plugins = [
        Plugin("op", "plist", sideband_plist.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    home = tmp_path / "home"
    async with Host(home=home, settings={"plugins": {"plist": settings}}, plugins=plugins, autoload=False) as host:
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
