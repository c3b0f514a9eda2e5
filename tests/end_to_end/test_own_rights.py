"""Rights of plugins of their own on the command line, and out of the reach of skills."""

import json
from types import SimpleNamespace

import pytest
from sideband import Host, Plugin
from sideband.ledger import query
from sideband.loading import LoadedSkills, SkillSpec, ToolSpec
from sideband.workers import GrantRequired, SkillFailed

pytestmark = pytest.mark.anyio

SQL = "sql:mode=write,path=geo.db"
GEO = f"""
from pydantic import BaseModel
from sideband.ops import OpFamily, op

class Nothing(BaseModel):
    pass

@op("geo.count")
async def count(params: Nothing, ctx) -> int:
    "Count the calls."
    await ctx.dispatch("sql.execute", {{"sql": "CREATE TABLE IF NOT EXISTS t (n)", "db": "geo.db"}}, rights="own")
    return 1

def sideband_ops():
    return OpFamily("geo", (count,), uses=["{SQL}"])
"""
SKILL = """
from sideband.skill import dispatch, geo, tool

@tool
async def count() -> int:
    return await geo.count()

@tool
async def take() -> None:
    await geo.count()
    await dispatch("sql.execute", {"sql": "DROP TABLE t", "db": "geo.db"})
"""


@pytest.fixture
def geo():
    module = SimpleNamespace()
    exec(GEO, module.__dict__)
    return Plugin("op", "geo", module, "sideband-geo")


@pytest.fixture
def installed(site, tmp_path):
    """The environment in which the plugin is installed, and a home."""
    (tmp_path / "home").mkdir()
    return {"PYTHONPATH": str(site("sideband-geo", "geo_plugin", GEO, "sideband.v1.op", "geo"))}


def configure(tmp_path, text):
    (tmp_path / "home" / "sideband.toml").write_text(text)


def test_command_without_an_approver_says_how_to_give_the_rights(sideband, installed):
    done = sideband("op", "geo.count", "--json", **installed)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (3, "approval.needed")
    assert f'"plugin:geo" = ["{SQL}"]' in error["hint"]


def test_call_whose_op_lacks_rights_of_its_own_ends_as_denied(sideband, installed, make_skill):
    done = sideband("call", "trip.count", "--skill-dir", make_skill("trip", SKILL), **installed)
    assert done.returncode == 3
    assert f'"plugin:geo" = ["{SQL}"]' in done.stderr


def test_configured_rights_are_used_and_shown_with_their_owner(sideband, installed, tmp_path):
    configure(tmp_path, f'[grants]\n"plugin:geo" = ["{SQL}"]\n')
    assert sideband("op", "geo.count", **installed).stdout == "1\n"
    (effect,) = json.loads(sideband("audit", "query", "--op", "sql.execute", "--json", **installed).stdout)
    shown = sideband("audit", "why", effect["effect"], **installed).stdout
    assert "a right of the plugin `geo`" in " ".join(shown.split())


def listed(sideband, installed):
    """Return the rights of the plugin, as data and as text, when the configuration is read and when it is not."""
    found = []
    for _ in range(2):
        records = json.loads(sideband("plugins", "list", "--kind", "op", "--json", **installed).stdout)
        text = " ".join(sideband("plugins", "list", "--kind", "op", **installed).stdout.split())
        found.append(({one["name"]: one["rights"] for one in records if one["rights"]}, text))
    assert found[0] == found[1]
    return found[0]


def test_list_of_plugins_shows_the_rights_that_the_configuration_gives(sideband, installed, tmp_path):
    configure(tmp_path, f'[grants]\n"plugin:geo" = ["{SQL}"]\nother = ["http"]\n')
    rights, text = listed(sideband, installed)
    assert rights == {"geo": [{"capability": SQL, "given_by": "policy"}]}
    assert f"op.geo was given rights of its own: {SQL} (by the configuration)" in text


def test_list_of_plugins_shows_the_rights_that_the_user_gave_until_they_are_revoked(sideband, installed, tmp_path):
    sideband("op", "geo.count", **installed)
    home = tmp_path / "home"
    (home / "grants.toml").write_text(f'[plugins."geo:sideband-geo"]\ncapabilities = ["{SQL}"]\n')
    assert sideband("op", "geo.count", **installed).returncode == 0
    assert listed(sideband, installed)[0] == {"geo": [{"capability": SQL, "given_by": "remembered"}]}
    (home / "grants.toml").unlink()
    assert sideband("op", "geo.count", **installed).returncode == 3
    assert listed(sideband, installed)[0] == {}


@pytest.mark.parametrize("content", ["[plugins", "plugins = 3", "[plugins]\ngeo = 3"])
def test_list_of_plugins_is_shown_with_a_damaged_file_of_grants(sideband, installed, tmp_path, content):
    (tmp_path / "home" / "grants.toml").write_text(content)
    assert listed(sideband, installed)[0] == {}


async def test_skill_uses_the_op_but_does_not_obtain_the_right(tmp_path, make_skill, geo):
    folder = make_skill("trip", SKILL)
    settings = {"grants": {"plugin:geo": [SQL]}}
    async with Host(home=tmp_path / "home", plugins=[geo], skill_dirs=[folder], settings=settings) as host:
        assert await host.call("trip.count") == 1
        with pytest.raises(SkillFailed, match="not granted"):
            await host.call("trip.take")
        newest, *others = await query(host.ledger.folder, op="sql.execute")
    assert (newest.status, newest.grant) == ("denied", ())
    assert {one.origin.plugin for one in others} == {"geo"}


async def test_skill_with_the_name_of_a_holder_does_not_get_its_rights(tmp_path, geo):
    spec = ToolSpec("plugin:geo", "go", "tools.py", "Go.", {"type": "object"}, validate=dict)

    async def load(sources):
        one = SkillSpec(
            "plugin:geo", "plugin:geo", "Named like a plugin.", tmp_path, tools=(spec,), capabilities=(SQL,)
        )
        return LoadedSkills((one,))

    loader = SimpleNamespace(sideband_loaders=lambda: [SimpleNamespace(name="mimic", load=load)])
    (tmp_path / "tools.py").write_text("async def go(): ...")
    plugins = [geo, Plugin("loader", "mimic", loader)]
    given = {"plugin:geo": [SQL]}
    async with Host(home=tmp_path / "home", plugins=plugins, settings={"grants": given}, grants=given) as host:
        with pytest.raises(GrantRequired):
            await host.call("plugin:geo.go")
