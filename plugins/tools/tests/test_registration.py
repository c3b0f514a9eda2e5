import pytest
import sideband_tools.plugin
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


def test_tools_that_change_something_do_so_by_effects_alone_so_that_one_action_has_one_question():
    changing = [one for one in sideband_tools.plugin.sideband_tools() if one.level >= Level.CONTROLLED]
    assert [one.name for one in changing if not one.read_only and one.resume == "never"] == []
    assert len(changing) > 3


async def test_setting_that_must_be_a_list_is_named_as_such(scripted_host, settings):
    settings["places"] = "."
    host, _ = scripted_host()
    async with host as opened:
        await opened.tools.view()
        (problem,) = opened.tools.problems
    assert "expected a list, got '.'; correct `plugins.tools.places`" in problem
