"""The op family passes the tests that every op family passes."""

from sideband_testing.conformance import Example, OpFamilyConformance


class TestServices(OpFamilyConformance):
    plugin = "op.services"
    also = ("loader.skills",)
    max_modules = 40
    examples = (
        Example("services.list", {}, result=[]),
        # A call that succeeds needs a worker, as in the other tests.
        Example("services.call", {"name": "weather", "params": {}}, error="services.unknown"),
    )
