"""The plugins of this package pass the tests that every plugin of their kind passes."""

import pytest
from sideband_testing.conformance import CommandConformance, HookConformance, SharedStoreConformance


class TestRedis(SharedStoreConformance):
    plugin = "store.redis"
    config = {
        "address": "{address}",
        "prefix": "{store}",
        "grace_seconds": 0.1,
        "lost_seconds": 3,
        "transaction_seconds": 1,
    }
    max_modules = 60

    @pytest.fixture(autouse=True)
    def _server(self, server):
        self.values["address"] = server.address


class TestRedisEvents(HookConformance):
    plugin = "hook.redis"
    config = {"address": "{address}", "publish": True}

    @pytest.fixture(autouse=True)
    def _server(self, server):
        self.values["address"] = server.address


class TestEventsCommand(CommandConformance):
    plugin = "command.events"
