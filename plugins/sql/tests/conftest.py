"""A host with this plugin and its own home directory."""

import pytest
import sideband_sql.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin


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
async def host(tmp_path, settings, more_plugins, anyio_backend):
    plugins = [
        *more_plugins,
        Plugin("op", "sql", sideband_sql.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    home = tmp_path / "home"
    async with Host(home=home, settings={"plugins": {"sql": settings}}, plugins=plugins, autoload=False) as host:
        yield host
