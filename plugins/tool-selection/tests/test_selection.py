"""With many tools, a request sends those that fit the conversation, in a stable order."""

import json
import logging
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import sideband_openai.plugin
from sideband import Plugin
from sideband.hooks import hookimpl
from sideband.providers import ProviderError
from sideband_testing import HttpServer

from .conftest import SELECTION

pytestmark = pytest.mark.anyio
EXPAND = "tool_expand_tools"


async def test_few_tools_are_all_sent_without_the_tool_that_requests_others(stage, kit):
    tools = [kit.make(one) for one in kit.subjects[:15]]
    async with stage(["ok"], *tools) as agent:
        await agent.invoke("the zebra")
        assert kit.sent(agent) == kit.subjects[:15]


async def test_many_tools_are_narrowed_to_those_that_fit(stage, kit):
    async with stage(["ok"]) as agent:
        await agent.invoke("Open the windows and feed the zebras, please.")
        sent = kit.sent(agent)
    assert len(sent) == 16
    assert {"window", "zebra", EXPAND} <= set(sent)
    assert sent == sorted(sent)


async def test_number_of_tools_is_a_setting(stage, kit):
    async with stage(["ok"], settings={"tools": {"suggest_over": 20}}) as agent:
        await agent.invoke("zebra")
        assert len(kit.sent(agent)) == 21


async def test_tools_that_are_always_sent_do_not_count(stage, kit):
    settings = {"tools": {"suggest_over": 5, "always": ["t*", "u*", "v*", "w*", "y*", "z*"]}}
    async with stage(["ok"], settings=settings) as agent:
        await agent.invoke("apple bridge candle desert engine")
        sent = set(kit.sent(agent)) - {EXPAND}
    assert {"turtle", "umbrella", "violin", "window", "yacht", "zebra"} < sent
    assert sent - set(kit.subjects[-6:]) == {"apple", "bridge", "candle", "desert", "engine"}


async def test_tools_that_were_sent_before_fill_what_is_left(stage, kit):
    settings = {"tools": {"suggest_over": 3}, "plugins": {"tool-selection": {"least": 1}}}
    async with stage(["ok", "ok", "ok", "ok"], settings=settings) as agent:
        await agent.invoke("zebra yacht window")
        for text in ("thanks", "well", "go on"):  # more inputs than are compared with the tools
            await agent.invoke(text)
        assert set(kit.sent(agent)) - {EXPAND} == {"window", "yacht", "zebra"}


async def test_tool_that_another_plugin_has_removed_is_not_sent(stage, kit):
    @hookimpl
    def tool_selection(event):
        return [name for name in event.selected if name != "zebra"]

    first = Plugin("hook", "first", SimpleNamespace(tool_selection=tool_selection))
    async with stage(["ok"], plugins=[first, *SELECTION]) as agent:
        await agent.invoke("zebra and yacht")
        assert {"yacht", "zebra"} & set(kit.sent(agent)) == {"yacht"}


async def test_tools_that_the_program_offers_to_the_agent_are_sent(stage, kit):
    async with stage(
        ["ok"], settings={"tools": {"suggest_over": 3}}, own_tools=[kit.make("own_a"), kit.make("own_b")]
    ) as agent:
        await agent.invoke("zebra")
        assert {"own_a", "own_b", "zebra"} <= set(kit.sent(agent))


async def test_many_tools_that_the_program_offers_are_narrowed_too(stage, kit):
    own = [kit.make(f"own_{letter}") for letter in "abcdefgh"]
    settings = {"tools": {"suggest_over": 3}, "plugins": {"tool-selection": {"least": 1}}}
    async with stage(["ok"], settings=settings, own_tools=own) as agent:
        await agent.invoke("zebra")
        assert len(kit.sent(agent)) == 4


async def test_categories_are_sent_as_a_whole(stage, kit):
    tools = [kit.make(one, category="odd" if number % 8 == 0 else "") for number, one in enumerate(kit.subjects)]
    settings = {"tools": {"suggest_over": 4}, "plugins": {"tool-selection": {"least": 1}}}
    async with stage(["ok"], *tools, settings=settings) as agent:
        await agent.invoke("apple")
        assert {"apple", "island", "quartz", "zebra"} <= set(kit.sent(agent))


async def test_called_tools_stay_while_the_subject_changes(stage, kit):
    settings = {"tools": {"suggest_over": 3}, "plugins": {"tool-selection": {"least": 1}}}
    turns = [kit.call("zebra"), "ok", "ok", "ok", "ok", "ok"]
    async with stage(turns, settings=settings) as agent:
        for text in ("zebra", "apple", "bridge", "candle", "desert"):
            await agent.invoke(text)
        assert {"zebra", "desert"} <= set(kit.sent(agent))


async def test_selection_stays_equal_to_the_byte_while_it_covers_the_subject(stage, kit):
    turns = [kit.call("zebra"), "ok", "ok", "ok"]
    async with stage(turns) as agent:
        await agent.invoke("zebra and yacht and window")
        await agent.invoke("now the yacht")
        await agent.invoke("what about the window")
        requests = [json.dumps([one.model_dump() for one in sent.tools]) for sent in agent.scripted.requests]
    assert len(requests) == 4
    assert len(set(requests)) == 1


class WithoutZebra:
    @hookimpl(before=["tool-selection"])
    def tool_selection(self, event):
        return [name for name in event.selected if name != "zebra"]


REMOVED = [*SELECTION, Plugin("hook", "remover", WithoutZebra())]


async def test_tool_that_another_plugin_removed_is_not_suggested(stage, kit):
    async with stage(["ok"], plugins=REMOVED) as agent:
        await agent.invoke("zebra and yacht")
        sent = kit.sent(agent)
        assert "yacht" in sent
        assert "zebra" not in sent


async def test_tool_that_another_plugin_removed_is_sent_once_the_model_requests_it(stage, kit):
    turns = [kit.call("tool_expand_tools", tool_names=["zebra"]), "ok"]
    async with stage(turns, plugins=REMOVED) as agent:
        await agent.invoke("zebra and yacht")
        assert ["zebra" in kit.sent(agent, number) for number in (0, 1)] == [False, True]


async def test_definitions_fit_the_window(stage, kit):
    tools = [kit.make(one, description=f"{one} " * 2_000) for one in kit.subjects]
    settings = {"agent": {"model": "scripted:test", "context_window": 40_000}}
    async with stage(["ok"], *tools, settings=settings) as agent:
        await agent.invoke("zebra")
        sent = kit.sent(agent)
    assert "zebra" in sent
    assert len(sent) < 10


async def test_agent_without_the_tool_that_requests_others_sends_all(stage, kit):
    async with stage(["ok"], tools=kit.subjects) as agent:
        await agent.invoke("zebra")
        assert kit.sent(agent) == kit.subjects


SELECTED_BY_MODEL = {"tools": {"suggest_with": "model", "suggest_over": 3}, "plugins": {"tool-selection": {"least": 1}}}


async def test_model_selects_if_that_is_configured(stage, kit):
    turns = ['["violin", "unknown", "jacket"]', kit.call("jacket"), "ok"]
    async with stage(turns, settings=SELECTED_BY_MODEL) as agent:
        await agent.invoke("something to play and to wear")
        assert {"violin", "jacket"} <= set(kit.sent(agent, 1))
        assert len(agent.scripted.requests) == 3
        assert '"request": "something to play and to wear"' in agent.scripted.requests[0].messages[-1].text


@pytest.mark.parametrize("answer", ["I cannot do that.", "[1, 2]", "[", ProviderError("scripted", "bad", status=400)])
async def test_words_select_if_the_model_does_not(stage, kit, answer, caplog):
    with caplog.at_level(logging.WARNING):
        async with stage([answer, "ok"], settings=SELECTED_BY_MODEL) as agent:
            await agent.invoke("zebra")
            assert "zebra" in kit.sent(agent)
    assert "selected by words" in caplog.text


BY_EMBEDDINGS = {
    "tools": {"suggest_with": "embeddings", "suggest_over": 3},
    "plugins": {"tool-selection": {"least": 1, "model": "openai:small"}},
}


def embeddings(*vectors):
    return {"data": [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]}


@pytest.fixture
def near(kit):
    """Return a function that returns a vector which is similar to those of these subjects."""
    return lambda *names: [float(one in names) for one in kit.subjects]


@pytest.fixture
def embedder(stage, credentials, near, kit):
    """Open an agent whose tools are selected by embeddings that a loopback server returns."""

    @asynccontextmanager
    async def opened(turns, settings=BY_EMBEDDINGS):
        with HttpServer() as server:
            server.reply({"data": []}, path="/v1/models")
            server.reply(embeddings(*map(near, kit.subjects)), path="/v1/embeddings")
            openai = Plugin("provider", "openai", sideband_openai.plugin)
            table = {"openai": {"base_url": f"{server.origin}/v1"}, **settings["plugins"]}
            plugins = [*SELECTION, openai, credentials.plugin]
            async with stage(turns, plugins=plugins, settings={**settings, "plugins": table}) as agent:
                agent.server = server
                yield agent

    return opened


def embedded(agent):
    return [json.loads(one.body)["input"] for one in agent.server.requests_to("/v1/embeddings")]


async def test_embeddings_select_if_that_is_configured_and_those_of_tools_are_requested_once(embedder, kit, near):
    async with embedder(["ok", "ok"]) as agent:
        agent.server.reply(embeddings(near("violin", "jacket")), path="/v1/embeddings", then=True)
        agent.server.reply(embeddings(near("pencil")), path="/v1/embeddings", then=True)
        await agent.invoke("something to play and to wear")
        assert {"violin", "jacket"} <= set(kit.sent(agent))
        await agent.invoke("something to write with")
        assert "pencil" in kit.sent(agent)
        assert len(kit.sent(agent)) < 10
        tools, *texts = embedded(agent)
    assert tools[0] == "apple: Do something with the apple."
    assert len(tools) == len(kit.subjects)
    assert texts == [["something to play and to wear"], ["something to play and to wear\nsomething to write with"]]


@pytest.mark.parametrize(
    "reply", [{"status": 500, "body": "no"}, {"body": {"data": []}}, {"body": embeddings(*[[1.0]])}], ids=str
)
async def test_words_select_if_there_are_no_embeddings(embedder, kit, caplog, reply):
    with caplog.at_level(logging.WARNING):
        async with embedder(["ok"]) as agent:
            agent.server.reply(**reply, path="/v1/embeddings", then=True)
            await agent.invoke("zebra")
            assert "zebra" in kit.sent(agent)
    assert "tools are selected by words" in caplog.text


async def test_words_select_if_no_model_for_embeddings_is_named(embedder, kit, caplog):
    settings = {**BY_EMBEDDINGS, "plugins": {"tool-selection": {"least": 1}}}
    with caplog.at_level(logging.WARNING):
        async with embedder(["ok"], settings) as agent:
            await agent.invoke("zebra")
            assert "zebra" in kit.sent(agent)
            assert embedded(agent) == []
    assert "names no model for embeddings" in caplog.text


async def test_usage_of_embeddings_is_charged_to_the_session(embedder, near):
    async with embedder(["ok"]) as agent:
        answer = {**embeddings(near("zebra")), "usage": {"prompt_tokens": 700_000}}
        agent.server.reply(answer, path="/v1/embeddings", then=True)
        before = agent.usage.input
        await agent.invoke("zebra")
        assert agent.usage.input - before >= 700_000


async def test_unknown_names_take_no_place_of_tools_that_the_model_selects(stage, kit):
    turns = [json.dumps([*(f"unknown_{number}" for number in range(10)), "violin"]), "ok"]
    async with stage(turns, settings=SELECTED_BY_MODEL) as agent:
        await agent.invoke("something to play")
        assert "violin" in kit.sent(agent, 1)


async def test_model_that_selects_gets_the_beginning_of_long_descriptions(stage, kit):
    tools = [kit.make(one, description="long " * 1_000) for one in kit.subjects]
    async with stage(["[]", "ok"], *tools, settings=SELECTED_BY_MODEL) as agent:
        await agent.invoke("zebra")
        assert len(agent.scripted.requests[0].messages[-1].text) < 300 * len(tools)
