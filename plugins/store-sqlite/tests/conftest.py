import pytest
from sideband_store_sqlite import open_sqlite


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
async def store(tmp_path):
    async with open_sqlite(tmp_path) as store:
        yield store
