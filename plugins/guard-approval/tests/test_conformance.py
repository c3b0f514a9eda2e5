"""The plugins pass the tests that every guard and every tool passes."""

from sideband.hooks import OpCall, ToolCall
from sideband.ops import Level, Origin
from sideband_testing.conformance import GuardConformance, ToolConformance


class TestApprovalGuard(GuardConformance):
    plugin = "guard.approval"
    max_modules = 40
    allows = (
        ToolCall("c1", "notes.read", {"name": "a"}, level=Level.MONITORED),
        OpCall("e1", "mail.send", {}, Level.RESTRICTED, Origin("user", tool="mail")),
    )


class TestPlan(ToolConformance):
    plugin = "tool.plan"
