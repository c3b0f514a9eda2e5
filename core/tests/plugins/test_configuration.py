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
        pin: SecretStr = SecretStr("")

    class Config(BaseModel):
        timeout: float = 3.0
        retries: int = 0
        api_token: int = 0
        pin: SecretStr = SecretStr("")
        inner: Inner = Inner()
        renamed: int = Field(default=0, alias="other_name")
        code: int = Field(default=0, repr=False)
        door: int = Field(default=0, alias="gate", repr=False)
        many: dict[str, list[Inner]] = {}
        proxy: int = 0
"""


@pytest.fixture
def tidal(site):
    return site.echo("tidal", extra=CONFIG)


async def rejected(home, table, **settings) -> PluginMisconfigured:
    policy = PluginPolicy(config={"tidal": table}, **settings)
    async with PluginHost(policy, home=home) as plugins:
        with pytest.raises(PluginMisconfigured) as caught:
            await plugins.load("op", "tidal")
        (record,) = plugins.why("tidal")
        assert record.state is State.FAILED
    return caught.value


@pytest.mark.parametrize(
    "table",
    [
        {"code": "pa55word"},
        {"gate": "pa55word"},
        {"inner": {"pin": ["pa55word"]}},
        {"many": {"a": [{"pin": ["pa55word"]}]}},
        {"proxy": "http://me:pa55word@proxy.example"},
    ],
)
async def test_invalid_secret_is_not_in_the_message(tidal, home, table):
    error = await rejected(home, table)
    assert "pa55word" not in f"{error}{error.as_dict()}"


async def test_plugin_receives_its_table_as_config(tidal, home):
    async with PluginHost(PluginPolicy(config={"tidal": {"timeout": "4", "other_name": 2}}), home=home) as plugins:
        loaded = await plugins.load("op", "tidal")
    assert (loaded.config.timeout, loaded.config.renamed, loaded.config.retries) == (4.0, 2, 0)
    assert loaded.context.config is loaded.config


async def test_plugin_without_a_table_receives_defaults(tidal, home):
    async with PluginHost(home=home) as plugins:
        assert (await plugins.load("op", "tidal")).config.timeout == 3.0


async def test_invalid_value_names_key_value_and_source(tidal, home):
    error = await rejected(home, {"timeout": "soon"}, config_source={"tidal": "sideband.toml"})
    assert isinstance(error, ConfigurationError)
    assert (error.code, error.exit_code, error.key) == ("config.invalid", 5, "plugins.tidal.timeout")
    assert "configuration `plugins.tidal.timeout` (sideband.toml)" in error.message
    assert "'soon'" in error.message


async def test_source_of_a_key_takes_precedence_over_its_table(tidal, home):
    sources = {"tidal": "sideband.toml", "tidal.timeout": "SIDEBAND_PLUGINS__TIDAL__TIMEOUT"}
    error = await rejected(home, {"timeout": "soon"}, config_source=sources)
    assert error.source == "SIDEBAND_PLUGINS__TIDAL__TIMEOUT"


async def test_nested_key_is_named_by_its_path(tidal, home):
    assert (await rejected(home, {"inner": {"host": 3}})).key == "plugins.tidal.inner.host"


async def test_misspelt_key_suggests_the_closest(tidal, home):
    error = await rejected(home, {"timout": 3})
    assert error.key == "plugins.tidal.timout"
    assert "did you mean `timeout`" in error.message


PATHS = """
    from pathlib import Path, PurePosixPath
    from typing import NamedTuple

    class Certificate(BaseModel):
        file: Path
        key: Path = Path("key.pem")

    class Config(BaseModel):
        script: Path = Path("default.toml")
        renamed: Path | None = Field(default=None, alias="other_name")
        absolute: Path | None = None
        user: Path | None = None
        mount: PurePosixPath | None = None
        folders: list[Path] = []
        pair: tuple[Path, int] | None = None
        certificates: dict[str, Certificate] = {}
"""


async def test_relative_path_in_a_file_is_resolved_against_its_folder(site, home):
    site.echo("paths", extra=f"    from pydantic import Field\n{PATHS}")
    tables = {
        "script": "a.toml",
        "other_name": "b.toml",
        "absolute": "/c.toml",
        "user": "~/d.toml",
        "mount": "kv",
        "folders": ["e", "/f"],
        "pair": ["g", 1],
        "certificates": {"x": {"file": "h"}},
    }
    sources = {f"paths.{key}": "/etc/project/sideband.toml" for key in tables}
    async with PluginHost(PluginPolicy(config={"paths": tables}, config_source=sources), home=home) as plugins:
        config = (await plugins.load("op", "paths")).config
    assert [str(path) for path in (config.script, config.renamed, config.absolute, config.user, config.mount)] == [
        *("/etc/project/a.toml", "/etc/project/b.toml", "/c.toml", "~/d.toml", "kv"),
    ]
    assert [*map(str, config.folders), str(config.pair[0])] == ["/etc/project/e", "/f", "/etc/project/g"]
    certificate = config.certificates["x"]
    assert (str(certificate.file), str(certificate.key)) == ("/etc/project/h", "key.pem")


@pytest.mark.parametrize("source", ["", "command line", "SIDEBAND_PLUGINS__PATHS__SCRIPT"])
async def test_relative_path_from_elsewhere_is_resolved_against_the_working_directory(site, home, source):
    site.echo("paths", extra=f"    from pydantic import Field\n{PATHS}")
    policy = PluginPolicy(config={"paths": {"script": "a.toml"}}, config_source={"paths.script": source})
    async with PluginHost(policy, home=home) as plugins:
        assert str((await plugins.load("op", "paths")).config.script) == "a.toml"


async def test_all_invalid_keys_are_reported_together(tidal, home):
    error = await rejected(home, {"timeout": "soon", "retries": "many", "unknown": 1})
    assert all(f"plugins.tidal.{key}`" in error.message for key in ("timeout", "retries", "unknown"))


@pytest.mark.parametrize("key", ["api_token", "pin"])
async def test_possibly_secret_value_is_not_shown(tidal, home, key):
    error = await rejected(home, {key: ["hunter2"]})
    assert f"plugins.tidal.{key}" in error.message
    assert "hunter2" not in error.message


async def test_long_value_is_truncated(tidal, home):
    assert len((await rejected(home, {"timeout": "x" * 10_000})).message) < 400


async def test_table_of_a_plugin_without_config_is_rejected(site, home):
    site.echo("tidal")
    error = await rejected(home, {"timeout": 3}, config_source={"tidal": "sideband.toml"})
    assert "configuration `plugins.tidal` (sideband.toml): the plugin does not accept" in error.message


async def test_table_may_belong_to_another_plugin_of_that_name(tidal, site, home):
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


async def test_table_of_a_missing_plugin_suggests_the_closest(tidal, home):
    policy = PluginPolicy(config={"tydal": {}}, config_source={"tydal": "sideband.toml"})
    async with PluginHost(policy, home=home) as plugins:
        (problem,) = [problem for problem in plugins.problems if "tydal" in problem]
    assert "`plugins.tydal` (sideband.toml)" in problem
    assert "did you mean `tidal`" in problem


@pytest.mark.parametrize("extra", ["ignore", "allow"])
async def test_config_may_allow_extra_keys(site, home, extra):
    site.echo("tidal", extra=f"class Config(BaseModel):\n    model_config = {{'extra': {extra!r}}}")
    async with PluginHost(PluginPolicy(config={"tidal": {"anything": 1}}), home=home) as plugins:
        assert await plugins.load("op", "tidal")


async def test_config_that_forbids_extra_keys_gives_the_same_message(site, home):
    site.echo("tidal", extra="class Config(BaseModel):\n    model_config = {'extra': 'forbid'}\n    timeout: int = 3")
    assert "unknown key (did you mean `timeout`?)" in (await rejected(home, {"timout": 1})).message


async def test_all_aliases_of_a_key_are_accepted(site, home):
    site.echo(
        "tidal",
        extra="from pydantic import AliasChoices, Field\n"
        "class Config(BaseModel):\n    a: int = Field(default=0, validation_alias=AliasChoices('b', 'c'))",
    )
    async with PluginHost(PluginPolicy(config={"tidal": {"c": 5}}), home=home) as plugins:
        assert (await plugins.load("op", "tidal")).config.a == 5


@pytest.mark.parametrize("source", ["Config = 3", "class Config: pass"])
async def test_config_must_be_a_pydantic_model(site, home, source):
    from sideband.plugins import PluginInvalid

    site.echo("tidal", extra=source)
    async with PluginHost(home=home) as plugins:
        with pytest.raises(PluginInvalid, match="not a pydantic model"):
            await plugins.load("op", "tidal")


async def test_registration_function_may_take_the_config(home):
    class Config(BaseModel):
        names: tuple[str, ...] = ()

    def providers(config):
        return [SimpleNamespace(name=f"tidal-{name}", models=print, stream=print) for name in config.names]

    value = SimpleNamespace(Config=Config, sideband_providers=providers)
    policy = PluginPolicy(config={"tidal": {"names": ["north", "south"]}})
    async with PluginHost(policy, inline=[Plugin("provider", "tidal", value)], home=home, autoload=False) as plugins:
        loaded = await plugins.load("provider", "tidal")
    assert [provider.name for provider in loaded.contribution] == ["tidal-north", "tidal-south"]


def test_repr_of_policy_omits_the_configuration():
    policy = PluginPolicy(deny={"op.shell": "no"}, config={"tidal": {"key": "hunter2"}})
    assert "op.shell" in repr(policy)
    assert "hunter2" not in repr(policy)
