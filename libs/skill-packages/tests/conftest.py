"""Environments, a folder of wheels, and a cache of uv for the tests."""

import os

import pytest
from sideband.environments import Environments


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_uv(monkeypatch, cache):
    """Isolate uv's settings: its cache belongs to the tests, and it does not retry requests."""
    for name in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")


@pytest.fixture
def environments(tmp_path):
    return Environments(tmp_path / "home")


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder
