from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband import ConfigurationError
from sideband.plugins import Plugin, PluginHost, PluginMisconfigured, PluginPolicy, State

pytestmark = pytest.mark.anyio

CONFIG = """
    from pydantic import Field, SecretStr

    class Inner(BaseModel):
        host: str = ""

    class Config(BaseModel):
        timeout: float = 3.0
        retries: int = 0
        api_token: int = 0
        pin: SecretStr = SecretStr("")
        inner: Inner = Inner()
        renamed: int = Field(default=0, alias="other_name")
"""


@pytest.fixture
def tidal(site):
    return site.echo("tidal", extra=CONFIG)


async def refused(home, table, **settings) -> PluginMisconfigured:
    policy = PluginPolicy(config={"tidal": table}, **settings)
    async with PluginHost(policy, home=home) as plugins:
        with pytest.raises(PluginMisconfigured) as caught:
            await plugins.load("op", "tidal")
        (record,) = plugins.why("tidal")
        assert record.state is State.FAILED
    return caught.value


async def test_a_plugin_gets_its_table_as_its_model(tidal, home):
    async with PluginHost(PluginPolicy(config={"tidal": {"timeout": "4", "other_name": 2}}), home=home) as plugins:
        loaded = await plugins.load("op", "tidal")
    assert (loaded.config.timeout, loaded.config.renamed, loaded.config.retries) == (4.0, 2, 0)
    assert loaded.context.config is loaded.config


async def test_a_plugin_without_a_table_gets_its_defaults(tidal, home):
    async with PluginHost(home=home) as plugins:
        assert (await plugins.load("op", "tidal")).config.timeout == 3.0


async def test_a_bad_value_is_told_with_key_value_and_source(tidal, home):
    error = await refused(home, {"timeout": "soon"}, config_source={"tidal": "sideband.toml"})
    assert isinstance(error, ConfigurationError)
    assert (error.code, error.exit_code, error.key) == ("config.invalid", 5, "plugins.tidal.timeout")
    assert "configuration `plugins.tidal.timeout` (sideband.toml)" in error.message
    assert "'soon'" in error.message


async def test_the_source_of_a_key_is_more_exact_than_that_of_its_table(tidal, home):
    sources = {"tidal": "sideband.toml", "tidal.timeout": "SIDEBAND_PLUGINS__TIDAL__TIMEOUT"}
    error = await refused(home, {"timeout": "soon"}, config_source=sources)
    assert error.source == "SIDEBAND_PLUGINS__TIDAL__TIMEOUT"


async def test_a_key_inside_a_key_is_told_by_its_path(tidal, home):
    assert (await refused(home, {"inner": {"host": 3}})).key == "plugins.tidal.inner.host"


async def test_a_misspelt_key_names_the_closest(tidal, home):
    error = await refused(home, {"timout": 3})
    assert error.key == "plugins.tidal.timout"
    assert "did you mean `timeout`" in error.message


async def test_all_bad_keys_are_told_at_once(tidal, home):
    error = await refused(home, {"timeout": "soon", "retries": "many", "unknown": 1})
    assert all(f"plugins.tidal.{key}`" in error.message for key in ("timeout", "retries", "unknown"))


@pytest.mark.parametrize("key", ["api_token", "pin"])
async def test_a_value_that_may_be_secret_is_not_shown(tidal, home, key):
    error = await refused(home, {key: ["hunter2"]})
    assert f"plugins.tidal.{key}" in error.message
    assert "hunter2" not in error.message


async def test_a_long_value_is_cut(tidal, home):
    assert len((await refused(home, {"timeout": "x" * 10_000})).message) < 400


async def test_a_table_for_a_plugin_that_takes_none_is_told(site, home):
    site.echo("tidal")
    error = await refused(home, {"timeout": 3}, config_source={"tidal": "sideband.toml"})
    assert "configuration `plugins.tidal` (sideband.toml): the plugin has no configuration" in error.message


async def test_a_table_may_be_meant_for_another_plugin_of_that_name(tidal, site, home):
    site.plugin(
        "provider",
        "tidal",
        "from types import SimpleNamespace\n"
        "one = SimpleNamespace(name='tidal', models=print, stream=print)\nsideband_providers = lambda: [one]",
        distribution="test-provider",
    )
    async with PluginHost(PluginPolicy(config={"tidal": {"timeout": 4}}), home=home) as plugins:
        assert (await plugins.load("provider", "tidal")).config is None
        assert (await plugins.load("op", "tidal")).config.timeout == 4


async def test_a_table_for_a_plugin_that_is_not_installed_names_the_closest(tidal, home):
    policy = PluginPolicy(config={"tydal": {}}, config_source={"tydal": "sideband.toml"})
    async with PluginHost(policy, home=home) as plugins:
        (problem,) = [problem for problem in plugins.problems if "tydal" in problem]
    assert "`plugins.tydal` (sideband.toml)" in problem
    assert "did you mean `tidal`" in problem


@pytest.mark.parametrize("extra", ["ignore", "allow"])
async def test_an_author_who_says_so_gets_other_keys_too(site, home, extra):
    site.echo("tidal", extra=f"class Config(BaseModel):\n    model_config = {{'extra': {extra!r}}}")
    async with PluginHost(PluginPolicy(config={"tidal": {"anything": 1}}), home=home) as plugins:
        assert await plugins.load("op", "tidal")


async def test_an_author_who_forbids_other_keys_gets_the_same_message(site, home):
    site.echo("tidal", extra="class Config(BaseModel):\n    model_config = {'extra': 'forbid'}\n    timeout: int = 3")
    assert "there is no such key (did you mean `timeout`?)" in (await refused(home, {"timout": 1})).message


async def test_a_key_with_several_names_may_have_any_of_them(site, home):
    site.echo(
        "tidal",
        extra="from pydantic import AliasChoices, Field\n"
        "class Config(BaseModel):\n    a: int = Field(default=0, validation_alias=AliasChoices('b', 'c'))",
    )
    async with PluginHost(PluginPolicy(config={"tidal": {"c": 5}}), home=home) as plugins:
        assert (await plugins.load("op", "tidal")).config.a == 5


@pytest.mark.parametrize("source", ["Config = 3", "class Config: pass"])
async def test_a_config_that_is_no_model_is_told(site, home, source):
    from sideband.plugins import PluginInvalid

    site.echo("tidal", extra=source)
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginInvalid, match="not a pydantic model"):
            await plugins.load("op", "tidal")


async def test_what_a_plugin_registers_may_depend_on_its_configuration(home):
    class Config(BaseModel):
        names: tuple[str, ...] = ()

    def providers(config):
        return [SimpleNamespace(name=f"tidal-{name}", models=print, stream=print) for name in config.names]

    value = SimpleNamespace(Config=Config, sideband_providers=providers)
    policy = PluginPolicy(config={"tidal": {"names": ["north", "south"]}})
    async with PluginHost(policy, inline=[Plugin("provider", "tidal", value)], home=home, autoload=False) as plugins:
        loaded = await plugins.load("provider", "tidal")
    assert [provider.name for provider in loaded.contribution] == ["tidal-north", "tidal-south"]


def test_a_policy_does_not_show_the_configuration_of_plugins():
    policy = PluginPolicy(deny={"op.shell": "no"}, config={"tidal": {"key": "hunter2"}})
    assert "op.shell" in repr(policy)
    assert "hunter2" not in repr(policy)
