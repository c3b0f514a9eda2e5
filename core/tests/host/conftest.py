"""Hosts with the plugins of a test."""

import pytest
import sideband_store_sqlite.plugin
from sideband import Host, Plugin


@pytest.fixture
def hosting(tmp_path):
    """Return a function that makes a host with these plugins."""

    def make_host(*plugins):
        store = Plugin("store", "sqlite", sideband_store_sqlite.plugin)
        return Host(home=tmp_path / "home", plugins=[store, *plugins], autoload=False)

    return make_host
