"""The op family passes the tests that every op family passes."""

from sideband_testing.conformance import Example, OpFamilyConformance


class TestCheckpoint(OpFamilyConformance):
    plugin = "op.checkpoint"
    max_modules = 40
    max_steps = 5
    examples = (
        Example("checkpoint.save", {"name": "place", "data": {"next": 2}}, result=None),
        Example("checkpoint.load", {"name": "place"}, result={"next": 1}),
        Example("checkpoint.clear", {"name": "place"}, result=True),
    )

    async def prepare_host(self, host, example):
        await host.op("checkpoint.save", {"name": "place", "data": {"next": 1}})
