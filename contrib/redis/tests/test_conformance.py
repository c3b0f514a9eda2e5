"""The plugin passes the tests that every shared store passes."""

import pytest
from sideband_testing.conformance import SharedStoreConformance


class TestRedis(SharedStoreConformance):
    plugin = "store.redis"
    config = {
        "address": "{address}",
        "prefix": "{store}",
        "grace_seconds": 0.1,
        "lost_seconds": 1,
        "transaction_seconds": 1,
    }
    max_modules = 60

    @pytest.fixture(autouse=True)
    def _server(self, server):
        self.values["address"] = server.address
