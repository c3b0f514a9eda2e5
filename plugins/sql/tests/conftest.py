"""A host with this plugin and its own home directory."""

import pytest
import sideband_sql.plugin
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
    plugins = [*more_plugins, Plugin("op", "sql", sideband_sql.plugin)]
    async with sideband_host(*plugins, settings={"plugins": {"sql": settings}}) as host:
        yield host
