"""Hosts with a cassette, and op families that count how often they really ran."""

import json
from types import SimpleNamespace

import pytest
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.ops import OpFamily
from sideband_cassettes import Cassette


@pytest.fixture
def anyio_backend():
    """Use asyncio, unless a test is parametrized with both backends."""
    return "asyncio"


@pytest.fixture
def family():
    """Return a function that creates an inline op plugin from its ops."""

    def make(name, *ops, lifespan=None, **options):
        module = SimpleNamespace(sideband_ops=lambda: OpFamily(name=name, ops=ops, **options))
        if lifespan is not None:
            module.lifespan = lifespan
        return Plugin(kind="op", name=name, value=module)

    return make


@pytest.fixture
def file(tmp_path):
    """Return the path of the cassette."""
    return tmp_path / "cassettes" / "one.json"


@pytest.fixture
def hosting(tmp_path, file):
    """Return a function that creates a host with a cassette, in a state folder of its own for each mode."""

    def make(mode, *plugins, home=None, path=file, places=None, **options):
        store = Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin)
        cassette = Cassette(path, mode, places=places or {})
        return Host(
            home=home or tmp_path / f"home-{mode}",
            plugins=[store, *plugins],
            autoload=False,
            cassette=cassette,
            **options,
        )

    return make


@pytest.fixture
def effects(file):
    """Return a function that reads the effects in the cassette."""
    return lambda: json.loads(file.read_text())["effects"]
