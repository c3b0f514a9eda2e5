"""The plugin passes the tests that every sandbox passes. On other systems than macOS, it isolates nothing."""

from sideband_testing.conformance import SandboxConformance


class TestSeatbelt(SandboxConformance):
    plugin = "sandbox.seatbelt"
    max_modules = 120
