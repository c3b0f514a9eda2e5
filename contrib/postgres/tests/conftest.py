"""A PostgreSQL server of the test run, and stores in schemas of their own."""

import secrets

import pytest
from sideband_postgres import Config, open_postgres

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
def schema():
    """The name of a schema that does not exist."""
    return f"test_{secrets.token_hex(8)}"


@pytest.fixture
def config(server, schema):
    """Return a function that returns the configuration of a store in this test's schema."""

    def make(on=server, **options):
        return Config(**{"address": on.address, "schema": schema, "grace_seconds": 0.2, **options})

    return make


@pytest.fixture
async def store(config):
    async with open_postgres(config()) as store:
        yield store
