"""Calls of skills with a cassette: their code runs in a worker, and their effects come from the file."""

import json
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import CallRequest, OpContext, OpFamily, Plugin, op
from sideband_cassettes import CassetteDivergence

pytestmark = pytest.mark.anyio

READ = '''
import asyncio
from sideband.skill import OpError, http, now, random, sql, tool, uuid

@tool
async def both(url: str) -> list:
    """Read two pages at once, with ids of the call."""
    paths = f"/a?at={now().isoformat()}", f"/b?id={uuid()}&n={random.random()}"
    found = await asyncio.gather(*(http.get(url + path) for path in paths))
    return [one["json"] for one in found] + [now().isoformat(), random.random()]

@tool
async def same(url: str) -> int:
    """Read one page."""
    return (await http.get(url + "/same"))["json"]["number"]

@tool
async def swallow(url: str, path: str = "/one") -> str:
    """Go on, whatever happens."""
    try:
        await http.get(url + path)
    except BaseException as error:
        return f"swallowed {type(error).__name__}"
    return "fine"

@tool
async def stubborn(url: str, path: str = "/one") -> str:
    """Wait for ever after an error."""
    try:
        await http.get(url + path)
    except OpError:
        await asyncio.sleep(3600)
    return "fine"

@tool
async def store(folder: str) -> list:
    """Write and read a database."""
    path = folder + "/notes.db"
    await sql.execute("create table notes (text)", db=path)
    await sql.execute("insert into notes values (1)", db=path)
    return (await sql.query("select * from notes", db=path))["rows"]
'''
GRANTS = {"pages": ["http:network=loopback", "sql"]}


@pytest.fixture(autouse=True)
def skill(make_skill):
    return make_skill("pages", READ, "http:network=loopback sql")


async def test_call_is_replayed_without_sockets_and_byte_by_byte(hosting, server, file, request):
    async with hosting("record", grants=GRANTS) as host:
        recorded = await host.call("pages.both", url=server.url)
    seen, before = len(server.requests), file.read_bytes()
    request.getfixturevalue("without_sockets")
    async with hosting("replay", grants=GRANTS) as host:
        replayed = await host.call("pages.both", url=server.url)
    assert json.dumps(replayed) == json.dumps(recorded)
    assert (len(server.requests), file.read_bytes()) == (seen, before)


async def test_parallel_calls_have_their_own_answers(hosting, server):
    async def all_of(host):
        found = {}

        async def one(url):
            found[url] = await host.call("pages.same", url=url)

        async with anyio.create_task_group() as tasks:
            for path in ("/x", "/y", "/z"):
                tasks.start_soon(one, server.url + path)
        return found

    async with hosting("record", grants=GRANTS) as host:
        recorded = await all_of(host)
    async with hosting("replay", grants=GRANTS) as host:
        assert await all_of(host) == recorded
    assert len(server.requests) == 3


@pytest.mark.parametrize("tool", ["swallow", "stubborn"])
async def test_skill_cannot_swallow_a_divergence(hosting, server, skill, tool):
    async with hosting("record", grants=GRANTS) as host:
        assert await host.call(f"pages.{tool}", url=server.url) == "fine"
    (skill / "tools.py").write_text(READ.replace('"/one"', '"/two"'))
    with pytest.raises(CassetteDivergence) as caught:  # noqa: PT012  opening and closing
        async with hosting("replay", grants=GRANTS) as host:
            with anyio.fail_after(30), pytest.raises(CassetteDivergence):
                await host.call(f"pages.{tool}", url=server.url)
    assert '/one"' in caught.value.diff
    assert '/two"' in caught.value.diff
    assert len(server.requests) == 1


async def test_call_with_other_arguments_stops_at_its_beginning(hosting, server):
    async with hosting("record", grants=GRANTS) as host:
        await host.call("pages.same", url=server.url)
    with pytest.raises(CassetteDivergence) as caught:
        async with hosting("replay", grants=GRANTS) as host:
            await host.call("pages.same", url=f"{server.url}/other")
    assert caught.value.op == "skill.begin"
    assert "/other" in caught.value.diff


async def test_database_is_not_opened_in_a_replay(hosting, tmp_path):
    async with hosting("record", grants=GRANTS) as host:
        recorded = await host.call("pages.store", folder=str(tmp_path))
    (tmp_path / "notes.db").unlink()
    async with hosting("replay", grants=GRANTS) as host:
        assert await host.call("pages.store", folder=str(tmp_path)) == recorded
    assert not (tmp_path / "notes.db").exists()


async def test_key_of_a_call_is_not_needed_in_a_replay(hosting, server):
    call = CallRequest("pages.same", {"url": server.url}, key="once")
    answers = []
    for mode in ("record", "replay"):
        async with hosting(mode, grants=GRANTS) as host:
            answers.append((await host.run(call)).output)
    assert answers == [1, 1]


class RelayParams(BaseModel):
    url: str


@op("relay.read", requires="relay")
async def relay(params: RelayParams, ctx: OpContext) -> str:
    return (await ctx.dispatch("http.get", {"url": params.url}))["json"]["page"]


RELAY = """
from sideband.skill import relay, tool

@tool
async def read(url: str) -> str:
    return await relay.read(url)
"""


async def test_effects_of_an_op_that_a_skill_uses_are_part_of_its_own(hosting, server, file, make_skill):
    make_skill("relaying", RELAY, "relay http:network=loopback")
    module = SimpleNamespace(sideband_ops=lambda: OpFamily("relay", (relay,)))
    options = {"plugins": [Plugin("op", "relay", module)], "grants": {"relaying": ["relay", "http:network=loopback"]}}
    for mode in ("record", "replay"):
        async with hosting(mode, **options) as host:
            assert await host.call("relaying.read", url=f"{server.url}/one") == "/one"
    assert server.requests == ["/one"]
    assert [one["op"] for one in json.loads(file.read_bytes())["effects"]] == ["skill.begin", "relay.read"]
