"""The plugin passes the tests that every hook plugin passes."""

from sideband.hooks import ModelError
from sideband_testing.conformance import HookConformance


class TestRetry(HookConformance):
    plugin = "hook.retry"
    max_modules = 40
    events = (
        ModelError("r1", "openai:m", {"code": "provider.refused", "status": 529, "message": "overloaded"}),
        ModelError("r1", "openai:m", {"code": "provider.refused", "status": 401, "message": "no key"}),
    )
