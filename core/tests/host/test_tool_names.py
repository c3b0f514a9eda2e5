"""Plugins of tools have any name; the namespaces of their tools belong to one distribution."""

from types import SimpleNamespace

import pytest
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.tools import Tool

pytestmark = pytest.mark.anyio


async def run(arguments, ctx):
    return "done"


def plugin(name, *tools, distribution):
    made = [one if not isinstance(one, str) else Tool(one, "", {"type": "object"}, dict, run) for one in tools]
    module = SimpleNamespace(sideband_tools=lambda: made)
    return Plugin("tool", name, module, distribution=distribution)


async def test_plugin_may_have_another_name_than_its_tools(hosting):
    async with hosting(plugin("acme-search", "find", "acme.open", "web.look", distribution="acme")) as host:
        view = await host.tools.view()
        assert [(one.name, one.source) for one in view.tools] == [
            ("acme.open", "plugin acme-search"),
            ("find", "plugin acme-search"),
            ("web.look", "plugin acme-search"),
        ]
        assert host.tools.context(view.get("web.look")).plugin == "acme-search"
        assert host.tools.problems == ()


async def test_plugins_of_one_distribution_share_a_namespace(hosting):
    one = plugin("acme-read", "acme.read", distribution="acme")
    two = plugin("acme-write", "acme.write", distribution="acme")
    async with hosting(one, two) as host:
        assert (await host.tools.view()).names == ("acme.read", "acme.write")


async def test_namespace_belongs_to_the_distribution_with_a_plugin_of_that_name(hosting):
    owner = plugin("notes", "notes.add", distribution="notes-tools")
    other = plugin("helper", "notes.evil", "helper.ok", distribution="helper-tools")
    async with hosting(owner, other) as host:
        assert (await host.tools.view()).names == ("helper.ok", "notes.add")
        why = "the name `notes` belongs to plugin notes of notes-tools"
        assert host.tools.problems == (f"omitted the tool `notes.evil` of plugin helper: {why}",)


async def test_tool_in_the_namespace_of_another_does_not_disable_one_with_its_name(hosting):
    owner = plugin("notes", "notes.add", distribution="notes-tools")
    other = plugin("helper", "notes.add", distribution="helper-tools")
    async with hosting(owner, other) as host:
        assert [one.source for one in (await host.tools.view()).tools] == ["plugin notes"]


async def test_plugin_that_cannot_be_used_keeps_its_namespace(hosting):
    broken = Plugin("tool", "notes", SimpleNamespace(sideband_tools=lambda: None), distribution="notes-tools")
    async with hosting(broken, plugin("helper", "notes.evil", distribution="helper-tools")) as host:
        assert (await host.tools.view()).names == ()


async def test_two_distributions_with_tools_in_one_namespace_are_both_omitted_and_named(hosting):
    one = plugin("a", "shared.a", "a", distribution="first-tools")
    two = plugin("b", "shared.b", distribution="second-tools")
    async with hosting(one, two) as host:
        assert (await host.tools.view()).names == ("a",)
        assert host.tools.problems[0] == (
            "omitted the tool `shared.a` of plugin a: plugin a of first-tools and plugin b of second-tools have tools "
            "named `shared`; deny one of these plugins in `[policy.deny]`"
        )
        assert len(host.tools.problems) == 2


async def test_two_plugins_of_one_distribution_with_the_same_tool_are_named(hosting):
    one = plugin("a", "shared.a", distribution="first-tools")
    two = plugin("b", "shared.a", distribution="first-tools")
    async with hosting(one, two) as host:
        assert (await host.tools.view()).names == ()
        assert host.tools.problems == (
            "omitted the tool `shared__a`: plugin a of first-tools and plugin b of first-tools provide it",
        )


async def test_denied_plugin_has_no_namespace(tmp_path):
    owner = plugin("notes", "notes.add", distribution="notes-tools")
    other = plugin("helper", "notes.more", distribution="helper-tools")
    plugins = [Plugin("store", "sqlite", sideband_store_sqlite.plugin), owner, other]
    settings = {"policy": {"deny": {"tool.notes": "not here"}}}
    async with Host(home=tmp_path, plugins=plugins, settings=settings, autoload=False) as host:
        assert (await host.tools.view()).names == ("notes.more",)
