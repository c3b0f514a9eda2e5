"""The op family passes the tests that every op family passes."""

from sideband_testing import Example, OpFamilyConformance


class TestShell(OpFamilyConformance):
    plugin = "op.shell"
    settings = {"policy": {"isolation": "none"}}
    max_modules = 120
    max_steps = 5
    examples = (
        Example("shell.run", {"binary": "true"}),
        Example("shell.run", {"binary": "no-such-program"}, error="shell.missing"),
        Example("shell.start", {"binary": "true"}),
        Example("shell.output", {"program": "none"}, error="shell.program"),
        Example("shell.stop", {"program": "none"}, error="shell.program"),
    )
