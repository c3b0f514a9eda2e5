"""The plugin passes the tests that every sandbox passes."""

from sideband_testing.conformance import SandboxConformance


class TestSandbox(SandboxConformance):
    plugin = "sandbox.sandbox"
    max_modules = 120
    settings = {"policy": {"isolation": "full"}}
