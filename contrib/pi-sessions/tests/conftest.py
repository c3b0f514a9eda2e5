"""Fixtures: sessions in a real store."""

import pytest
from sideband_agent.sessions import Sessions
from sideband_store_sqlite import open_sqlite


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def store(tmp_path):
    async with open_sqlite(tmp_path / "store") as store:
        yield store


@pytest.fixture
def sessions(store, tmp_path):
    return Sessions(store, tmp_path)
