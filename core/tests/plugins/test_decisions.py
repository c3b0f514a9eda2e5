import json
import re
import sys
from types import SimpleNamespace

import pytest
from sideband.plugins import (
    Plugin,
    PluginConflict,
    PluginDenied,
    PluginHost,
    PluginIncompatible,
    PluginNotFound,
    PluginPolicy,
    State,
)

pytestmark = pytest.mark.anyio


def record(plugins, name, distribution=None):
    (found,) = (one for one in plugins.why(name) if distribution in {None, one.distribution})
    return found


@pytest.mark.parametrize("pattern", ["op.tidal", "tidal", "test-tidal", "op.tid*", "test-*"])
async def test_denied_plugin_is_not_imported(site, home, pattern):
    module = site.plugin("op", "tidal", "raise RuntimeError('imported')")
    async with PluginHost(PluginPolicy(deny={pattern: "too wet"}), home=home) as plugins:
        with pytest.raises(PluginDenied, match="too wet") as caught:
            await plugins.load("op", "tidal")
        assert "tidal" not in plugins.names("op")
    assert caught.value.record.state is State.DENIED
    assert pattern in caught.value.record.decided_by
    assert module not in sys.modules


async def test_denied_hook_is_not_imported_at_startup(site, home):
    module = site.plugin("hook", "surf", "raise RuntimeError('imported')")
    async with PluginHost(PluginPolicy(deny={"surf": "too wild"}), home=home) as plugins:
        assert record(plugins, "surf").reason == "too wild"
    assert module not in sys.modules


async def test_plugins_outside_policy_only_are_denied(site, home):
    site.echo("tidal")
    module = site.echo("other")
    async with PluginHost(PluginPolicy(only=frozenset({"op.tidal"})), home=home) as plugins:
        assert plugins.names("op") == ("tidal",)
        with pytest.raises(PluginDenied, match="not in the list"):
            await plugins.load("op", "other")
    assert module not in sys.modules


async def test_plugin_for_another_core_is_not_imported(site, home):
    module = site.plugin("hook", "surf", "raise RuntimeError('imported')", requires=["sideband-core>=99"])
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginIncompatible, match=r"requires sideband-core>=99, but sideband-core 0\."):
            await plugins.load("hook", "surf")
        assert record(plugins, "surf").decided_by == "metadata"
    assert module not in sys.modules


async def test_incompatible_group_or_name_is_detected_from_metadata(site, home):
    cases = {
        "test-api": ("sideband.v2.op", "tidal", "version 2 of the plugin API, but this core has version 1"),
        "test-no-api": ("sideband.op", "tidal", "no version of the plugin API"),
        "test-kind": ("sideband.v1.opp", "tidal", r"did you mean `sideband\.v1\.op`"),
        "test-capital": ("sideband.v1.op", "Tidal", "lower-case words"),
        "test-hyphen": ("sideband.v1.op", "tidal-wave", "lower-case words"),
        "test-space": ("sideband.v1.op", "tidal wave", "lower-case words"),
        "test-escape": ("sideband.v1.hook", "surf\x1b[2J", "lower-case words"),
    }
    module = site.module("raise RuntimeError('imported')")
    for distribution, (group, name, _) in cases.items():
        site.distribution(distribution, {group: {name: module}})
    async with PluginHost(home=home) as plugins:
        records = {one.distribution: one for one in plugins.records}
    undetected = [
        distribution
        for distribution, (_, _, reason) in cases.items()
        if records[distribution].state is not State.INCOMPATIBLE or not re.search(reason, records[distribution].reason)
    ]
    assert undetected == []
    assert "\x1b" not in records["test-escape"].reason
    assert module not in sys.modules


async def test_plugins_of_the_same_name_are_both_refused(site, home):
    modules = [site.plugin("op", "tidal", "", distribution=name) for name in ("test-one", "test-two")]
    async with PluginHost(home=home) as plugins:
        assert {one.state for one in plugins.why("tidal")} == {State.FAILED}
        assert all(re.search("test-one 1.0 .* and by test-two 1.0 ", one.reason) for one in plugins.why("tidal"))
        with pytest.raises(PluginConflict) as caught:
            await plugins.load("op", "tidal")
    assert caught.value.distributions == ("test-one", "test-two")
    assert not set(modules) & set(sys.modules)
    first, second = (f"`{module}`, installed by by-hand, in {site.folder}" for module in modules)
    assert f"op `tidal` is claimed by test-one 1.0 ({first}) and by test-two 1.0 ({second})" in caught.value.message
    # The package that was installed last may be the one to distrust.
    assert '[policy.conflicts]`: "op.tidal" = "DISTRIBUTION"' in caught.value.hint
    assert not {"test-one", "test-two"} & set(re.split(r"[^\w-]", caught.value.hint))


async def test_conflict_with_an_inline_plugin_says_how_to_select_it(site, home):
    site.echo("tidal", distribution="test-one")
    inline = Plugin("op", "tidal", SimpleNamespace())
    with pytest.raises(PluginConflict) as caught:
        async with PluginHost(home=home, inline=[inline]) as plugins:
            await plugins.load("op", "tidal")
    assert '"op.tidal" = "inline" for the plugin that is passed to the host' in caught.value.hint


async def test_policy_resolves_a_conflict(site, home):
    site.echo("tidal", distribution="test-one")
    site.echo("tidal", distribution="test-two")
    policy = PluginPolicy(conflicts={"op.tidal": "test-two"})
    async with PluginHost(policy, home=home) as plugins:
        loaded = await plugins.load("op", "tidal")
        assert loaded.record.distribution == "test-two"
        assert record(plugins, "tidal", "test-one").state is State.DENIED
        assert "test-two, which was chosen" in record(plugins, "tidal", "test-one").reason


async def test_choosing_a_missing_distribution_does_not_resolve_a_conflict(site, home):
    site.echo("tidal", distribution="test-one")
    site.echo("tidal", distribution="test-two")
    async with PluginHost(PluginPolicy(conflicts={"op.tidal": "test-three"}), home=home) as plugins:
        with pytest.raises(PluginConflict):
            await plugins.load("op", "tidal")
        assert "`test-three`" in record(plugins, "tidal", "test-one").reason


async def test_denying_all_but_one_resolves_a_conflict(site, home):
    site.echo("tidal", distribution="test-one")
    site.echo("tidal", distribution="test-two")
    async with PluginHost(PluginPolicy(deny={"test-one": "old"}), home=home) as plugins:
        assert (await plugins.load("op", "tidal")).record.distribution == "test-two"


async def test_plugin_does_not_replace_an_incompatible_one(site, home):
    site.echo("tidal", distribution="test-one", requires=["sideband-core<0.1"])
    site.echo("tidal", distribution="test-two")
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginConflict):
            await plugins.load("op", "tidal")
        assert record(plugins, "tidal", "test-one").state is State.INCOMPATIBLE


async def test_duplicate_name_in_one_distribution_is_a_conflict(site, home):
    site.distribution("test-tidal", {"sideband.v1.op": {"tidal": "one"}})
    entry_points = site.folder / "test_tidal-1.0.dist-info" / "entry_points.txt"
    entry_points.write_text("[sideband.v1.op]\ntidal = one\ntidal = two\n")
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginConflict, match=r"test-tidal .* and by test-tidal"):
            await plugins.load("op", "tidal")


async def test_inline_plugin_conflicts_with_an_installed_one(site, home):
    site.echo("tidal")
    async with PluginHost(home=home, inline=[Plugin("op", "tidal", object())]) as plugins:
        with pytest.raises(PluginConflict, match="inline"):
            await plugins.load("op", "tidal")


async def test_same_name_in_two_kinds_is_not_a_conflict(site, home):
    site.echo("tidal")
    site.plugin("skill", "tidal", "", distribution="test-skill")
    async with PluginHost(home=home) as plugins:
        assert {one.state for one in plugins.why("tidal")} == {State.FOUND}
        assert plugins.why("tidal", kind="skill")[0].distribution == "test-skill"


async def test_name_of_a_package_is_answered_with_its_plugins(site, home):
    site.echo("tidal")
    site.plugin("skill", "lunar", "", distribution="test-moon")
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginNotFound, match="unknown plugin `test-moon`") as caught:
            plugins.why("test-moon")
    assert caught.value.hint == "this is a package; name one of its plugins: skill.lunar"


async def test_unknown_name_suggests_the_closest(site, home):
    site.echo("tidal")
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginNotFound, match="did you mean `tidal`"):
            await plugins.load("op", "tydal")
        with pytest.raises(PluginNotFound, match="did you mean `tidal`"):
            plugins.why("tydal")


async def test_only_inline_plugins_are_loaded_without_autoload(site, home):
    site.echo("tidal")
    async with PluginHost(home=home, autoload=False, inline=[Plugin("hook", "surf", object())]) as plugins:
        assert [one.label for one in plugins.records] == ["hook.surf"]


async def test_records_are_sorted_and_serialisable(site, home):
    site.echo("tidal")
    site.echo("ebb")
    async with PluginHost(home=home) as plugins:
        labels = [one.label for one in plugins.records]
        assert labels == sorted(labels)
        data = json.loads(json.dumps(record(plugins, "ebb").as_dict()))
    assert (data["state"], data["installer"], data["hashed"]) == ("found", "by-hand", True)


async def test_trail_contains_each_state(site, home):
    site.echo("tidal")
    async with PluginHost(home=home) as plugins:
        await plugins.load("op", "tidal")
        trail = record(plugins, "tidal").trail
        assert [step.state.value for step in trail] == ["found", "imported", "validated", "active"]
        assert record(plugins, "tidal").load_ms > 0


async def test_guard_whose_extra_is_not_installed_is_incompatible_and_denies(site, home):
    module = site.module("raise RuntimeError('imported')")
    guards = {"sideband.v1.guard": {"watch": f"{module} [fast]"}}
    site.distribution("test-watch", guards, extras=["fast"], requires=['no-such-thing; extra == "fast"'])
    async with PluginHost(home=home) as plugins:
        assert record(plugins, "watch", "test-watch").state is State.INCOMPATIBLE
        with pytest.raises(PluginIncompatible, match=r"test-watch\[fast\].* requires no-such-thing") as caught:
            await plugins.load("guard", "watch")
        assert "watch" in [one.plugin for one in plugins.hooks.order("op_call")]
    assert "extras" in caught.value.hint
    assert module not in sys.modules
