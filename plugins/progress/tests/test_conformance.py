"""The op family passes the tests that every op family passes."""

from sideband_testing.conformance import Example, OpFamilyConformance


class TestProgress(OpFamilyConformance):
    plugin = "op.progress"
    max_modules = 20
    examples = (Example("progress.report", {"current": 1, "total": 2}, result=None),)
