import pytest
from sideband_store_sqlite import open_sqlite


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def store(tmp_path):
    async with open_sqlite(tmp_path) as store:
        yield store
