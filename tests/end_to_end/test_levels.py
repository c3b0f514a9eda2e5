"""The level of a skill's tools is the highest that its grant reaches, and its effects have their own."""

import json

import pytest
from sideband import CallRequest, Host
from sideband.approvals import Approval
from sideband.ledger import query
from sideband.ops import Grant, Level, reach
from sideband.workers import GrantRequired
from sideband_agent import Agent

pytestmark = pytest.mark.anyio

CODE = """
from sideband.skill import http, sql, tool

@tool
async def fetch(url: str) -> int:
    \"\"\"Fetch a URL.\"\"\"
    return (await http.request(url, method="GET"))["status"]

@tool
async def count(db: str) -> int:
    \"\"\"Count in a database.\"\"\"
    return len((await sql.query("SELECT 1", db=db))["rows"])
"""

NOTHING = "from sideband.skill import tool\n@tool\nasync def run() -> None:\n    pass\n"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def make_host(tmp_path):
    def make(*folders, **options):
        settings = {"policy": {"isolation": "none"}}
        return Host(home=tmp_path / "home", settings=settings, skill_dirs=folders, **options)

    return make


LEVELS = {
    "": "SAFE",
    "http:host=api.github.com,method=GET": "MONITORED",
    "http:method=GET": "CONTROLLED",
    "http:host=api.github.com": "RESTRICTED",
    "http:host=api.github.com,method=PUT": "CONTROLLED",
    "sql:mode=read": "MONITORED",
    "sql": "CONTROLLED",
    "files:mode=read": "MONITORED",
    "files:mode=read|write": "CONTROLLED",
    "files:mode=read http:host=api.github.com,method=GET": "MONITORED",
    "secrets:mode=use": "MONITORED",
    "secrets:name=github": "MONITORED",
    "secrets:mode=reveal": "CONTROLLED",
    "blobs:mode=read": "MONITORED",
    "blobs:mode=delete": "RESTRICTED",
    "crypto:op=hash": "SAFE",
    "crypto": "CONTROLLED",
    "llm": "MONITORED",
    "shell:binary=git": "RESTRICTED",
    "http:host=api.github.com,method=GET sql:mode=read files:mode=read secrets:mode=use": "MONITORED",
    "http:host=a.org,method=GET http:method=GET,path=/x": "CONTROLLED",
    # a right that no call could be granted has no level
    "http:hots=a.org sql:mode=read": "MONITORED",
    "nothing:here=1": "SAFE",
}


async def test_tools_of_a_skill_have_the_level_of_its_grant(make_host, make_skill):
    folders = [make_skill(f"skill{number}", NOTHING, text) for number, text in enumerate(LEVELS)]
    async with make_host(*folders) as host:
        view = await host.tools.view()
        found = {text: view.get(f"skill{number}.run").level.name for number, text in enumerate(LEVELS)}
    assert found == LEVELS


async def test_rights_that_the_host_adds_raise_the_level(make_host, make_skill):
    folder = make_skill("fetcher", CODE, "http:host=api.github.com,method=GET")
    async with make_host(folder, grants={"fetcher": ["http:host=api.github.com,method=POST"]}) as host:
        assert (await host.tools.view()).get("fetcher.fetch").level is Level.RESTRICTED


@pytest.mark.parametrize(("given", "level"), [((), Level.CONTROLLED), (("http:method=GET",), Level.MONITORED)])
async def test_question_about_a_grant_has_the_level_that_it_allows(make_host, make_skill, given, level):
    asked = []

    async def approver(request):
        asked.append(request.level)
        return Approval("deny")

    folder = make_skill("fetcher", CODE, "sql:mode=read http:method=GET")
    async with make_host(folder, approver=approver, grants={"fetcher": given}) as host:
        with pytest.raises(GrantRequired):
            await host.call("fetcher.count", db="a.db")
    assert asked == [level]


async def test_guards_of_tools_see_the_level_of_the_grant(make_host, make_skill):
    async with make_host(make_skill("fetcher", CODE, "sql:mode=read")) as host, Agent(host) as agent:
        assert agent.tools.get("fetcher.fetch").level is Level.MONITORED


async def test_effect_of_a_skill_is_recorded_with_its_level(make_host, make_skill, gate):
    gate.opened.set()
    url = f"http://127.0.0.1:{gate.server_port}/"
    async with make_host(make_skill("fetcher", CODE)) as host:
        for grant in ("http:host=127.0.0.1,method=GET", "http:network=loopback,method=GET", "http:host=127.0.0.1"):
            await host.run(CallRequest("fetcher.fetch", {"url": url}, grants=(grant,)))
        records = await query(host.ledger.folder)
    assert [one.level.name for one in records if one.op == "http.request"] == ["MONITORED", "CONTROLLED", "MONITORED"]


async def test_grant_of_a_whole_family_reaches_each_op_that_requires_it(make_host):
    async with make_host() as host:
        ops = host.broker.ops
        specs = [spec for name in host.plugins.names("op") for spec in (await ops.plugin(name)).contribution.ops]
    required = [spec for spec in specs if spec.requires is not None]
    assert len(required) > 60
    for spec in required:
        assert reach([spec], Grant.parse([spec.requires])) is spec.level, spec.name


def test_skills_are_listed_and_shown_with_their_level(sideband, make_skill):
    folder = make_skill("fetcher", CODE, "http:host=api.github.com,method=GET")
    listed = sideband("skills", "list", "--skill-dir", folder, "--json")
    levels = {skill["name"]: skill["level"] for skill in json.loads(listed.stdout)["skills"]}
    assert levels["fetcher"] == "monitored"
    assert "monitored" in sideband("skills", "list", "--skill-dir", folder).stdout
    assert "\nlevel: monitored\n" in sideband("skills", "show", "fetcher", "--skill-dir", folder).stdout


def test_ops_are_shown_with_what_lowers_their_level(sideband):
    shown = sideband("ops", "show", "http.request").stdout
    assert shown.startswith("http.request  (up to restricted; ")
    assert "\nmonitored with host=…,method=GET|HEAD|OPTIONS\n" in shown
    data = json.loads(sideband("ops", "show", "http.get", "--json").stdout)
    assert (data["level"], data["needs"]) == ("controlled", {"method": ["GET"]})
    assert data["lower"] == [{"level": "monitored", "fields": {"host": None}}]
    assert "\nrequires: sql:mode=read\n" in sideband("ops", "show", "sql.query").stdout
    assert "up to controlled" in sideband("ops", "list", "http").stdout
