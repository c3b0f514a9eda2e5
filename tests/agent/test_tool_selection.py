"""Plugins select which tools a request sends. They cannot add any, and the model gets others on request."""

import json
from types import SimpleNamespace

import pytest
from sideband import Plugin
from sideband.tools import Tool
from sideband_agent import Agent, Budget
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


def make(name, answer="done", description=""):
    async def run(arguments, ctx):
        return answer

    return Tool(name, description, {"type": "object", "properties": {}}, dict, run)


NOTES = Plugin("tool", "notes", SimpleNamespace(sideband_tools=lambda: [make(f"notes.{one}") for one in "abc"]))


def call(*names):
    return Turn(tool_calls=[(name, {}) for name in names])


def sent(agent):
    return [[one.name.removeprefix("notes__") for one in request.tools] for request in agent.scripted.requests]


def results(agent):
    return [one.text for one in agent.session.messages() if one.role == "tool"]


def selecting(kit, function, name="select"):
    return Plugin("hook", name, kit.hooks(tool_selection=function))


def noting(events):
    def note(event):
        events.append(event)

    return note


async def test_all_tools_are_sent_by_default(stage):
    async with stage(["ok"], NOTES) as agent:
        await agent.invoke("hi")
        assert sent(agent) == [["a", "b", "c"]]


async def test_selected_tools_are_sent_and_the_others_stay_allowed(stage, kit):
    async with stage(["ok"], NOTES, selecting(kit, lambda event: ["notes__a", "notes__c"])) as agent:
        await agent.invoke("hi")
        assert sent(agent) == [["a", "c"]]
        assert agent.tools.names == ("notes.a", "notes.b", "notes.c")


@pytest.mark.parametrize("answer", [[], ()])
async def test_request_can_be_sent_without_tools(stage, kit, answer):
    async with stage([call("notes__a"), "ok"], NOTES, selecting(kit, lambda event: answer)) as agent:
        await agent.invoke("hi")
        assert sent(agent)[0] == []


async def test_each_plugin_sees_the_selection_of_the_previous_one(stage, kit):
    def select_two(event):
        return ["notes__a", "notes__b"]

    def drop_one(event):
        seen.append(event.selected)
        return event.selected[1:]

    seen = []
    plugins = selecting(kit, select_two, "a"), selecting(kit, drop_one, "b")
    async with stage(["ok"], NOTES, *plugins) as agent:
        await agent.invoke("hi")
        assert seen == [("notes__a", "notes__b")]
        assert sent(agent) == [["b"]]


async def test_selection_cannot_add_tools_that_the_agent_may_not_call(stage, kit):
    def select(event):
        return ["notes__a", "notes__b", "notes.b", "other", *(one.name for one in event.candidates), "", "notes__a"]

    async with stage([call("notes__b"), "ok"], NOTES, selecting(kit, select), tools=["notes.a"]) as agent:
        await agent.invoke("hi")
        assert sent(agent) == [["a"], ["a"]]
        assert "unknown tool `notes__b`" in results(agent)[0]


@pytest.mark.parametrize("answer", ["notes__a", {"notes__a"}, [1], [None], RuntimeError("boom"), 5])
async def test_all_tools_are_sent_if_the_plugin_fails(stage, kit, answer):
    def select(event):
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with stage(["ok"], NOTES, selecting(kit, select)) as agent:
        assert (await agent.invoke("hi")).status == "completed"
        assert sent(agent) == [["a", "b", "c"]]


async def test_event_has_the_conversation_the_candidates_and_a_budget(stage, kit):
    events = []
    settings = {"agent": {"model": "scripted:test", "context_window": 100_000, "compaction": {"reserve": 10_000}}}
    async with stage(["ok"], NOTES, selecting(kit, noting(events)), settings=settings) as agent:
        await agent.invoke("find the note " + "x" * 40_000)
        (event,) = events
    assert [one.name for one in event.candidates] == ["notes__a", "notes__b", "notes__c"]
    assert {one.source for one in event.candidates} == {"plugin notes"}
    assert all(0 < one.tokens < 100 for one in event.candidates)
    assert event.messages[-1]["content"][0]["text"].startswith("find the note")
    assert 70_000 < event.tokens < 81_000


async def test_nothing_is_selected_for_an_agent_without_tools(stage, kit):
    events = []
    async with stage(["ok"], NOTES, selecting(kit, noting(events)), tools=[]) as agent:
        await agent.invoke("hi")
        assert sent(agent) == [[]]
    assert events == []


async def test_budget_does_not_depend_on_the_tools_that_were_sent_before(stage, kit):
    def select(event):
        budgets.append(event.tokens)
        return [] if len(budgets) == 1 else None

    budgets = []
    large = Plugin("tool", "large", make("large", description="x" * 40_000))
    settings = {"agent": {"model": "scripted:test", "context_window": 100_000}}
    async with stage(["ok", "ok"], large, selecting(kit, select), settings=settings) as agent:
        await agent.invoke("hi")
        await agent.invoke("hi")
    assert abs(budgets[0] - budgets[1]) < 1_000


async def test_budget_of_a_small_window_is_what_the_messages_leave_of_its_half(stage, kit):
    events = []
    compaction = {"enabled": False, "reserve": 50_000}
    settings = {"agent": {"model": "scripted:test", "context_window": 10_000, "compaction": compaction}}
    async with stage(["ok"], NOTES, selecting(kit, noting(events)), settings=settings) as agent:
        await agent.invoke("hi")
    assert 3_000 < events[0].tokens < 5_000


async def test_budget_is_never_negative(stage, kit):
    events = []
    settings = {"agent": {"model": "scripted:test", "context_window": 1_000, "compaction": {"enabled": False}}}
    async with stage(["ok"], NOTES, selecting(kit, noting(events)), settings=settings) as agent:
        await agent.invoke("x" * 40_000)
    assert events[0].tokens == 0


async def test_call_of_a_tool_that_was_not_sent_is_not_run_and_the_tool_is_sent_from_then_on(stage, kit):
    turns = [call("notes__b"), call("notes__b"), "ok", "ok"]
    async with stage(turns, NOTES, selecting(kit, lambda event: ["notes__a"])) as agent:
        await agent.invoke("hi")
        rejected, answered = results(agent)
        assert rejected.startswith("The tool notes__b is available, but was not sent with this request, so it was not")
        assert rejected.endswith("It is sent from now on: read its definition and call it again.")
        assert answered == "done"
        await agent.invoke("again")
        assert sent(agent) == [["a"], ["a", "b"], ["a", "b"], ["a", "b"]]


async def test_call_of_a_tool_that_was_not_sent_names_the_tool_that_expands_the_selection(stage, kit):
    wanted = ["tool_expand_tools"]

    async def expand(arguments, ctx):
        wanted.append("notes__b")
        return "expanded"

    tool = Tool("tool_expand_tools", "", {"type": "object"}, dict, expand)
    turns = [call("notes__b"), call("tool_expand_tools"), call("notes__b"), "ok"]
    plugins = NOTES, Plugin("tool", "tool_expand_tools", tool), selecting(kit, lambda event: list(wanted))
    async with stage(turns, *plugins) as agent:
        await agent.invoke("hi")
        assert "Call tool_expand_tools with the name notes__b" in results(agent)[0]
        assert results(agent)[1:] == ["expanded", "done"]
        assert sent(agent) == [["tool_expand_tools"]] * 2 + [["b", "tool_expand_tools"]] * 2


async def test_child_that_may_not_call_the_tool_that_expands_the_selection_gets_the_called_tool(stage, kit):
    async def delegate(arguments, ctx):
        return (await ctx.spawn_child("work", tools=["notes.b"])).text

    own = [Tool("delegate", "", {"type": "object"}, dict, delegate), make("tool_expand_tools")]
    turns = [call("delegate"), call("notes__b"), call("notes__b"), "child", "ok"]
    select = selecting(kit, lambda event: ["delegate", "tool_expand_tools"])
    async with stage(turns, NOTES, select, own_tools=own) as agent:
        await agent.invoke("hi")
        rejected, answered = [one.text for one in agent.scripted.requests[3].messages if one.role == "tool"]
    assert "It is sent from now on" in rejected
    assert answered == "done"


async def test_requested_tool_that_is_withdrawn_is_not_sent(stage, kit):
    turns = [call("b"), "ok", "ok"]
    select = selecting(kit, lambda event: ["a"])
    async with stage(turns, select, own_tools=[make("a"), make("b")]) as agent:
        await agent.invoke("hi")
        assert sent(agent) == [["a"], ["a", "b"]]
        agent.withdraw("b")
        await agent.invoke("again")
        assert sent(agent)[2] == ["a"]


async def test_definitions_in_requests_stay_equal_to_the_byte_while_the_selection_does(stage, kit):
    selections = iter([["notes__a", "notes__b"], ["notes__b", "notes__a"], ["notes__a"], ["notes__a", "notes__b"]])
    turns = [call("notes__a")] * 3 + ["ok"]
    async with stage(turns, NOTES, selecting(kit, lambda event: next(selections))) as agent:
        await agent.invoke("hi")
        first, second, third, fourth = [
            json.dumps([one.model_dump() for one in request.tools]) for request in agent.scripted.requests
        ]
    assert first == second == fourth != third


async def test_tool_whose_declaration_changes_is_sent_as_it_is_now(stage, kit):
    select = selecting(kit, lambda event: ["look_up"])
    async with stage(["ok", "ok"], select, own_tools=[make("look_up", description="Look.")]) as agent:
        await agent.invoke("hi")
        agent.withdraw("look_up")
        agent.offer(make("look_up", description="Look further."))
        await agent.invoke("hi")
        assert [one.tools[0].description for one in agent.scripted.requests] == ["Look.", "Look further."]


async def test_unchanged_selection_shares_the_definitions_of_all_requests(stage, kit):
    views = []

    def select(event, ctx):
        views.append(ctx.agent._parts.tools.sent)
        return ["notes__a"]

    async with stage([call("notes__a"), call("notes__a"), "ok"], NOTES, selecting(kit, select)) as agent:
        await agent.invoke("hi")
        views.append(agent._parts.tools.sent)
    assert views[1] is views[2] is views[3]


async def test_messages_are_converted_once_for_all_requests(stage, kit):
    events = []
    async with stage([call("notes__a"), "ok", "ok"], NOTES, selecting(kit, noting(events))) as agent:
        await agent.invoke("hi")
        await agent.invoke("again")
    first, second, third = [event.messages for event in events]
    assert first[0] is second[0] is third[0]
    assert second[1] is third[1]
    assert [len(one) for one in (first, second, third)] == [1, 3, 5]


async def test_messages_of_a_rewound_conversation_are_those_of_now(stage, kit):
    events = []
    async with stage(["ok", "ok"], NOTES, selecting(kit, noting(events))) as agent:
        await agent.invoke("hi")
        await agent.rewind(None)
        await agent.invoke("hello")
    assert [one["content"][0]["text"] for one in events[1].messages] == ["hello"]


async def test_calls_that_wait_when_a_run_is_resumed_are_run_without_another_request(stage, kit):
    select = selecting(kit, lambda event: ["notes__a"])
    async with stage([call("notes__a", "notes__a"), "ok"], NOTES, select, budget=Budget(calls=1)) as agent:
        assert (await agent.invoke("hi")).status == "parked"
        session = agent.session.id
        await agent.new_session()
        async with Agent(agent.host, session=session, budget=Budget()) as other:
            assert (await other.resume()).status == "completed"
            assert results(other) == ["done", "done"]
            assert sent(agent) == [["a"], ["a"]]


async def test_conversation_is_measured_with_the_tools_that_are_sent(stage, kit):
    large = [make(f"notes.x{number}", description="x" * 4_000) for number in range(50)]
    plugin = Plugin("tool", "notes", SimpleNamespace(sideband_tools=lambda: large))
    async with stage(["ok"], plugin, selecting(kit, lambda event: ["notes__x1"])) as agent:
        assert agent.context_tokens > 50_000
        await agent.invoke("hi")
        assert agent.context_tokens < 5_000


async def test_child_agents_select_from_the_tools_of_their_parent(stage, kit):
    async def delegate(arguments, ctx):
        return (await ctx.spawn_child("work")).text

    tool = Tool("delegate", "", {"type": "object"}, dict, delegate)
    select = selecting(kit, lambda event: ["delegate", "notes__a"])
    turns = [call("delegate"), call("notes__b"), "child", "ok"]
    async with stage(turns, NOTES, Plugin("tool", "delegate", tool), select) as agent:
        await agent.invoke("hi")
        assert sent(agent) == [["delegate", "a"], ["delegate", "a"], ["delegate", "a", "b"], ["delegate", "a"]]
