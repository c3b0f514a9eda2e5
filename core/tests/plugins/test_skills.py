import sys

import pytest
from sideband.plugins import PluginHost, PluginInvalid, PluginPolicy, State

pytestmark = pytest.mark.anyio


def package(site, name, *, init="raise RuntimeError('imported')"):
    folder = site.folder / name
    folder.mkdir()
    if init is not None:
        (folder / "__init__.py").write_text(init)
    (folder / "SKILL.md").write_text("---\nname: tides\n---\n")
    return folder


@pytest.mark.parametrize("init", ["raise RuntimeError('imported')", None], ids=["package", "namespace"])
async def test_skill_is_located_without_import(site, home, init):
    folder = package(site, "tides_skill", init=init)
    site.distribution("test-tides", {"sideband.v1.skill": {"tides": "tides_skill"}}, version="3.1")
    async with PluginHost(PluginPolicy(only=frozenset({"tides"})), home=home) as plugins:
        (located,) = plugins.locate_skills()
        assert plugins.locate_skills() == (located,)
        assert plugins.why("tides")[0].state is State.VALIDATED
    assert (located.name, located.path, located.distribution, located.version) == ("tides", folder, "test-tides", "3.1")
    assert "tides_skill" not in sys.modules


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_package", "does not exist"),
        ("tides_skill.inner", "a top-level package"),
        ("tides_skill:thing", "a top-level package"),
        ("tides_module", "not a folder"),
    ],
)
async def test_unlocatable_skill_fails_with_a_reason(site, home, value, reason):
    package(site, "tides_skill")
    (site.folder / "tides_module.py").write_text("raise RuntimeError('imported')")
    site.distribution("test-tides", {"sideband.v1.skill": {"tides": value}})
    async with PluginHost(PluginPolicy(only=frozenset({"tides"})), home=home) as plugins:
        assert plugins.locate_skills() == ()
        assert plugins.why("tides")[0].state is State.FAILED
        assert reason in plugins.why("tides")[0].reason
    assert not {"tides_skill", "tides_module"} & set(sys.modules)


async def test_denied_skill_is_not_located(site, home):
    package(site, "tides_skill")
    site.distribution("test-tides", {"sideband.v1.skill": {"tides": "tides_skill"}})
    policy = PluginPolicy(deny={"tides": "no"}, only=frozenset({"tides"}))
    async with PluginHost(policy, home=home) as plugins:
        assert plugins.locate_skills() == ()


async def test_skill_cannot_be_loaded_as_a_plugin(site, home):
    site.distribution("test-tides", {"sideband.v1.skill": {"tides": "tides_skill"}})
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginInvalid, match="cannot be loaded as a plugin"):
            await plugins.load("skill", "tides")
