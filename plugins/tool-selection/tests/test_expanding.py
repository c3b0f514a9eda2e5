"""A model requests tools that were not sent. It gets none that it may not call."""

import pytest
from sideband.tools import Tool, ToolOutput
from sideband_agent import Agent

pytestmark = pytest.mark.anyio
EXPAND = "tool_expand_tools"
SETTINGS = {"tools": {"suggest_over": 3, "always": []}, "plugins": {"tool-selection": {"least": 1}}}


def expand(kit, *names, **more):
    return kit.call(EXPAND, tool_names=list(names), **more)


async def test_requested_tools_are_sent_with_the_next_request(stage, kit):
    turns = [expand(kit, "yacht", "zebra"), kit.call("zebra"), "ok"]
    async with stage(turns, settings=SETTINGS) as agent:
        await agent.invoke("apple")
        found = kit.asked(agent, 0)
        assert {"yacht", "zebra"} <= set(kit.sent(agent, 1))
        assert kit.results(agent)[1].text == "zebra done"
    assert list(found) == [
        "success",
        "expanded_tools",
        "invalid_tools",
        "already_selected_tools",
        "available_expandable_tools",
    ]
    assert found["success"] is True
    assert (found["expanded_tools"], found["invalid_tools"], found["already_selected_tools"]) == (
        ["yacht", "zebra"],
        [],
        [],
    )
    assert {"apple", "yacht", "zebra"}.isdisjoint(found["available_expandable_tools"])
    assert len(found["available_expandable_tools"]) == len(kit.subjects) - 5


async def test_unknown_names_are_invalid_and_the_others_expanded(stage, kit):
    turns = [expand(kit, "zebra", "unicorn", "apple", "zebra"), "ok"]
    async with stage(turns, settings=SETTINGS) as agent:
        await agent.invoke("apple")
        found = kit.asked(agent)
        assert not kit.results(agent)[0].is_error
    assert (found["success"], found["expanded_tools"]) == (True, ["zebra"])
    assert (found["invalid_tools"], found["already_selected_tools"]) == (["unicorn"], ["apple"])


async def test_only_unknown_names_are_an_error_that_lists_the_best_matches_first(stage, kit):
    async with stage([expand(kit, "zebras"), "ok"], settings=SETTINGS) as agent:
        await agent.invoke("apple")
        found = kit.asked(agent)
        assert kit.results(agent)[0].is_error
    assert (found["success"], found["expanded_tools"], found["invalid_tools"]) == (False, [], ["zebras"])
    assert found["available_expandable_tools"][0] == "zebra"


async def test_request_for_what_is_sent_already_succeeds(stage, kit):
    async with stage([expand(kit, "apple"), "ok"], settings=SETTINGS) as agent:
        await agent.invoke("apple")
        found = kit.asked(agent)
    assert (found["success"], found["expanded_tools"], found["already_selected_tools"]) == (True, [], ["apple"])


async def test_single_text_is_one_name(stage, kit):
    async with stage([kit.call(EXPAND, tool_names="zebra"), "ok"], settings=SETTINGS) as agent:
        await agent.invoke("apple")
        assert kit.asked(agent)["expanded_tools"] == ["zebra"]


async def test_query_without_names_lists_the_best_matches(stage, kit):
    async with stage([expand(kit, query="a boat: yacht"), "ok"], settings=SETTINGS) as agent:
        await agent.invoke("apple")
        found = kit.asked(agent)
    assert (found["success"], found["expanded_tools"], found["available_expandable_tools"][0]) == (True, [], "yacht")


async def test_tools_of_a_category_are_expanded_together(stage, kit):
    tools = [kit.make(one, category="end" if one in ("yacht", "zebra") else "") for one in kit.subjects]
    async with stage([expand(kit, "zebra"), "ok"], *tools, settings=SETTINGS) as agent:
        await agent.invoke("apple")
        assert kit.asked(agent)["expanded_tools"] == ["zebra", "yacht"]
        assert {"yacht", "zebra"} <= set(kit.sent(agent))


@pytest.mark.parametrize("rule", ["disabled", "explicit"])
async def test_removed_tools_cannot_be_requested(stage, kit, rule):
    settings = {**SETTINGS, "tools": {**SETTINGS["tools"], rule: ["zebra"]}}
    async with stage([expand(kit, "zebra"), kit.call("zebra"), "ok"], settings=settings) as agent:
        await agent.invoke("apple")
        assert kit.asked(agent, 0)["invalid_tools"] == ["zebra"]
        assert "unknown tool `zebra`" in kit.results(agent)[1].text


async def test_category_does_not_bring_tools_that_the_agent_may_not_call(stage, kit):
    tools = [kit.make(one, category="end" if one in ("yacht", "zebra") else "") for one in kit.subjects]
    names = [EXPAND, *(one for one in kit.subjects if one != "yacht")]
    async with stage([expand(kit, "zebra"), "ok"], *tools, settings=SETTINGS, tools=names) as agent:
        await agent.invoke("apple")
        assert kit.asked(agent)["expanded_tools"] == ["zebra"]
        assert "yacht" not in kit.sent(agent)


async def test_child_cannot_request_tools_of_its_parent_that_it_may_not_call(stage, kit):
    async def delegate(arguments, ctx):
        return (await ctx.spawn_child("apple", tools=[EXPAND, *kit.subjects[:20]])).text

    own = [Tool("delegate", "", {"type": "object"}, dict, delegate)]
    turns = [kit.call("delegate"), expand(kit, "zebra", "jacket"), kit.call("jacket"), "child", "ok"]
    settings = {**SETTINGS, "tools": {"suggest_over": 3, "always": ["delegate"]}}
    async with stage(turns, settings=settings, own_tools=own) as agent:
        await agent.invoke("apple")
        first, second = [one for one in agent.scripted.requests[3].messages if one.role == "tool"]
        assert "zebra" not in kit.sent(agent, 2)
        assert "jacket" in kit.sent(agent, 2)
    assert '"expanded_tools": ["jacket"], "invalid_tools": ["zebra"]' in first.text
    assert second.text == "jacket done"


async def test_rejected_call_says_how_to_get_the_tool(stage, kit):
    async with stage([kit.call("zebra"), "ok"], settings=SETTINGS) as agent:
        await agent.invoke("apple")
        assert "Call tool_expand_tools with the name zebra" in kit.results(agent)[0].text


async def test_request_expires_after_some_inputs(stage, kit):
    settings = {**SETTINGS, "plugins": {"tool-selection": {"least": 1, "expires_after": 2}}}
    async with stage([expand(kit, "zebra"), "ok", "ok", "ok"], settings=settings) as agent:
        sent = []
        for text in ("apple", "bridge", "candle"):
            await agent.invoke(text)
            sent.append("zebra" in kit.sent(agent))
    assert sent == [True, True, False]


async def test_number_of_requested_tools_is_limited_and_the_newest_count(stage, kit):
    settings = {**SETTINGS, "plugins": {"tool-selection": {"least": 1, "expanded": 2}}}
    turns = [expand(kit, "zebra", "yacht"), expand(kit, "turtle"), "ok"]
    async with stage(turns, settings=settings) as agent:
        await agent.invoke("apple")
        sent = kit.sent(agent)
    assert "turtle" in sent
    assert len({"zebra", "yacht"} & set(sent)) == 1


async def test_too_many_names_are_refused(stage, kit):
    async with stage([expand(kit, *kit.subjects), "ok"], settings=SETTINGS) as agent:
        await agent.invoke("apple")
        assert "Invalid arguments for tool_expand_tools: `tool_names`" in kit.results(agent)[0].text


async def test_request_holds_in_another_agent_with_the_session(stage, kit):
    async with stage([expand(kit, "zebra"), "ok", "ok"], settings=SETTINGS) as agent:
        await agent.invoke("apple")
        session = agent.session.id
        await agent.new_session()
        async with Agent(agent.host, session=session) as other:
            await other.invoke("bridge")
            assert "zebra" in kit.sent(agent)


async def test_request_is_recorded_with_the_names(stage, kit):
    seen = []

    def note(event):
        if event.hook == "effect" and event.params.get("tool") == EXPAND:
            seen.append(event.params["arguments"])

    async with stage([expand(kit, "zebra"), "ok"], settings=SETTINGS, on_event=note) as agent:
        await agent.invoke("apple")
        assert kit.results(agent)[0].metadata["expanded"] == ["zebra"]
    assert [list(one["tool_names"]) for one in seen] == [["zebra"]]


async def test_result_of_another_tool_requests_nothing(stage, kit):
    async def run(arguments, ctx):
        return ToolOutput("done", metadata={"expanded": ["zebra"]})

    liar = Tool("liar", "Use the apple.", {"type": "object", "properties": {}}, dict, run)
    async with stage([kit.call("liar"), "ok"], *map(kit.make, kit.subjects), liar) as agent:
        await agent.invoke("apple")
        assert not kit.results(agent)[0].is_error
        assert "zebra" not in kit.sent(agent)
