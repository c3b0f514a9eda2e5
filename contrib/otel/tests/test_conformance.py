"""The plugins pass the tests that every plugin of their kinds passes."""

import pytest
from sideband_testing.conformance import Example, HookConformance, OpFamilyConformance


class TestOff(HookConformance):
    plugin = "hook.otel"


class TestOn(HookConformance):
    plugin = "hook.otel"
    config = {"enabled": True, "close_seconds": 25}

    @pytest.fixture(autouse=True)
    def _collector(self, sending):
        """Send to the collector."""


class TestTrace(OpFamilyConformance):
    plugin = "op.trace"
    examples = [
        Example("trace.parent", {"host": "queue.example"}),
    ]
