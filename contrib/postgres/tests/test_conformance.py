"""The plugin passes the tests that every shared store passes."""

import pytest
from sideband_testing.conformance import SharedStoreConformance


class TestPostgres(SharedStoreConformance):
    plugin = "store.postgres"
    config = {"address": "{address}", "schema": "{store}", "grace_seconds": 0.1}
    max_modules = 200
    needs_modules = ("psycopg",)

    @pytest.fixture(autouse=True)
    def _server(self, server):
        self.values["address"] = server.address
