"""A Redis server of the test run, and stores with prefixes of their own."""

import secrets

import pytest
from sideband_redis import Config, open_redis

from .server import Server, folder_of_server


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def server():
    """A server that no test stops."""
    with folder_of_server() as folder, Server(folder) as running:
        yield running


@pytest.fixture
def own_server():
    """A server that a test may stop."""
    with folder_of_server() as folder, Server(folder) as running:
        yield running


@pytest.fixture
def prefix():
    """The beginning of keys that do not exist."""
    return f"test_{secrets.token_hex(8)}"


@pytest.fixture
def config(server, prefix):
    """Return a function that returns the configuration of a store with this test's prefix."""

    def make(on=server, **options):
        return Config(**{"address": on.address, "prefix": prefix, "grace_seconds": 0.2, **options})

    return make


@pytest.fixture
async def store(config):
    async with open_redis(config()) as store:
        yield store
