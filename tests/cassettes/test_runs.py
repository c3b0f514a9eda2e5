"""Runs of agents with a cassette: models, skills, tools and children, without a provider or a connection."""

import re
from contextlib import asynccontextmanager
from datetime import datetime
from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.hooks import MessageUpdate
from sideband.messages import ToolCallPart, to_data
from sideband.providers import ProviderRefused
from sideband.tools import tool
from sideband_agent import Agent
from sideband_cassettes import CassetteDivergence, read_cassette
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

READ = '''
from sideband.skill import http, tool

@tool
async def read(url: str) -> int:
    """Read a page."""
    return (await http.get(url))["json"]["number"]
'''
GRANTS = {"pages": ["http:network=loopback"]}
VOLATILE = re.compile(rb'"(?:started|checksum)": ')


class Nothing(BaseModel):
    pass


@pytest.fixture
def turns(server):
    reads = [("pages__read", {"url": f"{server.url}/{name}"}) for name in "ab"]
    return [Turn(text="I look at both.", thinking="Which?", tool_calls=reads), "They differ.\nReally."]


@pytest.fixture(autouse=True)
def skill(make_skill):
    return make_skill("pages", READ, "http:network=loopback")


async def run(host, *prompts):
    events = []
    async with host, Agent(host, on_event=events.append) as agent:
        results = [await agent.invoke(prompt) for prompt in prompts]
        deltas = [event.delta for event in events if isinstance(event, MessageUpdate)]
        streamed = "".join(delta["text"] for delta in deltas if delta["type"] == "text")
        return [result.text for result in results], streamed, [result.status for result in results], agent.usage


async def test_run_is_replayed_without_sockets_and_providers(hosting, turns, server, file, request):
    recorded = await run(hosting("record", *turns, grants=GRANTS), "look")
    seen, before = len(server.requests), file.read_bytes()
    request.getfixturevalue("without_sockets")
    replayed = await run(hosting("replay", "another model", grants=GRANTS), "look")
    assert replayed == recorded
    assert recorded[0] == ["They differ.\nReally."]
    assert (len(server.requests), file.read_bytes()) == (seen, before)


async def test_recording_a_run_twice_differs_only_in_what_is_declared(hosting, file):
    contents = []
    for _ in range(2):
        await run(hosting("record", "hello"), "hi", "hi again")
        contents.append(file.read_bytes())
    assert read_cassette(file).started.startswith(str(datetime.now().astimezone().date()))
    one, two = ([line for line in content.splitlines() if not VOLATILE.search(line)] for content in contents)
    assert one == two


async def test_changed_prompt_stops_the_run_and_shows_the_difference(hosting, turns, server):
    await run(hosting("record", *turns, grants=GRANTS), "look at both")
    with pytest.raises(CassetteDivergence) as caught:
        await run(hosting("replay", grants=GRANTS), "look at all")
    assert caught.value.op == "llm.generate"
    assert '-          "text": "look at both",' in caught.value.diff
    assert '+          "text": "look at all",' in caught.value.diff


async def test_changed_skill_ends_the_run(hosting, turns, server, skill):
    await run(hosting("record", *turns, grants=GRANTS), "look")
    (skill / "tools.py").write_text(READ.replace("get(url)", 'get(url + "?changed")'))
    with pytest.raises(CassetteDivergence) as caught:
        await run(hosting("replay", *turns, grants=GRANTS), "look")
    assert caught.value.op == "http.get"
    assert "?changed" in caught.value.diff
    assert len(server.requests) == 2


async def test_failures_of_a_provider_are_replayed(hosting, file):
    refused = ProviderRefused("scripted", "bad request", status=400, body="{}", retryable=False)
    recorded = await run(hosting("record", refused), "hi")
    assert read_cassette(file).effects[0].error["type"] == "ProviderRefused"
    assert read_cassette(file).effects[0].error["status"] == 400
    assert await run(hosting("replay"), "hi") == recorded


async def test_tools_of_plugins_and_children_run_with_recorded_effects(hosting, file):
    called = []

    @tool("delegate")
    async def delegate(params: Nothing, ctx) -> str:
        """Ask a child."""
        called.append("delegate")
        return (await ctx.spawn_child("think")).text

    plugin = Plugin("tool", "delegate", delegate)
    turns = [Turn(tool_calls=[("delegate", {})]), "from the child", "done"]
    recorded = await run(hosting("record", *turns, plugins=[plugin]), "go")
    replayed = await run(hosting("replay", plugins=[plugin]), "go")
    assert replayed == recorded
    assert called == ["delegate"] * 2
    assert {one.within for one in read_cassette(file).effects if one.op == "llm.generate"} >= {"0", "1"}


async def test_source_of_tools_is_not_opened_in_a_replay(hosting, file):
    opened = []

    @tool("desk.call")
    async def call(params: Nothing, ctx) -> str:
        """Call the desk."""
        opened.append("called")
        return "the desk is open"

    class Desk:
        name, scope = "desk", "host"

        async def list(self):
            return [call]

        async def changed(self):
            await anyio.sleep_forever()

        @asynccontextmanager
        async def open(self, ctx):
            opened.append("opened")
            yield self

    async def ask(host):
        async with host:
            await host.tools.wait_for_sources()
            async with Agent(host) as agent:
                return (await agent.invoke("go")).text, [to_data(one) for one in agent.session.context().messages][2]

    plugin = Plugin("tool", "desk", SimpleNamespace(sideband_tools=lambda: [Desk()]))
    turns = [Turn(tool_calls=[("desk__call", {})]), "done"]
    text, result = await ask(hosting("record", *turns, plugins=[plugin]))
    before = file.read_bytes()
    replayed = await ask(hosting("replay", plugins=[plugin]))
    assert (replayed[0], replayed[1]["content"]) == (text, result["content"])
    assert opened == ["opened", "called"]
    assert [one.op for one in read_cassette(file).effects if one.op.startswith("tool")] == ["tools.list", "tool.call"]
    await ask(hosting("missing", plugins=[plugin]))
    assert file.read_bytes() == before


async def test_ids_that_the_agent_makes_are_the_same_in_a_replay(hosting):
    @tool("long")
    async def long(params: Nothing, ctx) -> str:
        """Return a result that is too long for a model."""
        return "word " * 20_000

    plugin = Plugin("tool", "long", long)
    same = ToolCallPart(id="same", name="long", arguments={})
    turns = [Turn(tool_calls=[same, same]), "done"]
    recorded = await run(hosting("record", *turns, plugins=[plugin]), "go")
    assert await run(hosting("replay", plugins=[plugin]), "go") == recorded
