import pytest
from sideband.ops import Level

pytestmark = pytest.mark.anyio


async def test_tools_are_registered_with_the_host(host):
    view = await host.tools.view()
    assert {"output", "skill", "subagent", "greeter.greet"} <= set(view.names)
    assert (view.get("subagent").source, host.tools.problems) == ("plugin subagent", ())


async def test_reading_tools_are_safe_and_read_only(host):
    view = await host.tools.view()
    for name in ("output", "skill"):
        assert (view.get(name).level, view.get(name).read_only) == (Level.SAFE, True)
    assert not view.get("subagent").read_only


async def test_parameters_have_descriptions(host):
    for name in ("output", "skill", "subagent"):
        schema = (await host.tools.view()).get(name).schema
        assert schema.description
        assert all(one["description"] for one in schema.parameters["properties"].values())
