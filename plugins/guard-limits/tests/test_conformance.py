"""The plugin passes the tests that every guard passes."""

from sideband.hooks import OpCall
from sideband.ops import Level, Origin
from sideband_testing.conformance import GuardConformance


class TestLimitGuard(GuardConformance):
    plugin = "guard.guard-limits"
    max_modules = 40
    allows = (OpCall("e1", "mail.send", {}, Level.RESTRICTED, Origin("user")),)
