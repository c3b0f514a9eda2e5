"""Goals: at most one in a session, shown to the model with each call, and restored with the session."""

import pytest
from sideband import Plugin
from sideband.hooks import Compacted, hookimpl
from sideband.tools import tool
from sideband_agent import Agent, GoalInvalid
from sideband_agent.sessions import GoalEntry, read_file, write_file
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


@pytest.fixture
def seen(kit):
    events = []
    return events, Plugin("hook", "watcher", kit.listening(events, "goal_update"))


def outline(events):
    return [(one.goal, one.previous, one.status) for one in events]


def texts(request):
    return [message.text for message in request.messages]


async def test_goal_is_shown_at_the_end_of_each_request_and_not_stored(stage, kit):
    turns = [Turn(tool_calls=[("echo", {"text": "x"})]), "ok"]
    async with stage(turns, kit.echo) as agent:
        await agent.set_goal("all tests pass")
        await agent.invoke("go on")
        first, second = agent.scripted.requests
        assert "all tests pass" in texts(first)[-1]
        assert texts(second)[-1] == texts(first)[-1]
        assert texts(second)[:-1] == ["go on", "", "x"]
        assert not any("all tests pass" in one.text for one in agent.session.messages())


async def test_goal_does_not_change_the_system_prompt(stage):
    async with stage(["one", "two"]) as agent:
        await agent.invoke("first")
        await agent.set_goal("all tests pass")
        await agent.invoke("second")
        first, second = agent.scripted.requests
    assert (first.system, first.tools) == (second.system, second.tools)
    assert texts(second)[:1] == texts(first)


@pytest.mark.parametrize("status", ["reached", "dropped"])
async def test_ended_goal_is_no_longer_shown(stage, seen, status):
    events, plugin = seen
    async with stage(["one"], plugin) as agent:
        await agent.set_goal("all tests pass")
        assert agent.goal == "all tests pass"
        assert await agent.end_goal(status)
        assert agent.goal is None
        await agent.invoke("first")
        assert texts(agent.scripted.requests[0]) == ["first"]
    assert outline(events) == [("all tests pass", None, "set"), (None, "all tests pass", status)]


async def test_end_of_a_missing_goal_changes_nothing(stage, seen):
    events, plugin = seen
    async with stage([], plugin) as agent:
        assert not await agent.end_goal()
        assert agent.session.path() == ()
    assert events == []


async def test_unknown_status_is_refused(stage):
    async with stage([]) as agent:
        await agent.set_goal("all tests pass")
        with pytest.raises(GoalInvalid, match="`reached` or `dropped`, got `set`"):
            await agent.end_goal("set")
        assert agent.goal == "all tests pass"


async def test_new_goal_replaces_the_previous_one(stage, seen):
    events, plugin = seen
    async with stage(["one"], plugin) as agent:
        await agent.set_goal("all tests pass")
        await agent.set_goal("  all tests are fast ")
        await agent.invoke("first")
        assert "all tests pass" not in "".join(texts(agent.scripted.requests[0]))
    assert outline(events)[1] == ("all tests are fast", "all tests pass", "set")


@pytest.mark.parametrize(
    ("goal", "problem"),
    [("  ", "the goal is empty"), ("x" * 4_001, "exceeds the limit of 4,000 characters: it has 4,001")],
)
async def test_invalid_goal_is_refused(stage, seen, goal, problem):
    events, plugin = seen
    async with stage([], plugin) as agent:
        with pytest.raises(GoalInvalid, match=problem):
            await agent.set_goal(goal)
        await agent.set_goal("x" * 4_000)
    assert len(events) == 1


async def test_secret_in_a_goal_is_redacted(stage, seen):
    events, plugin = seen
    async with stage([], plugin) as agent:
        agent.host.context_for("agent").protect("correct-horse-battery", "horse")
        await agent.set_goal("log in with correct-horse-battery")
        assert "battery" not in agent.goal
    assert "battery" not in events[0].goal


async def test_goal_can_change_during_a_run(stage, kit):
    @tool("change")
    async def change(params: kit.Text, ctx) -> str:
        """Change the goal."""
        await ctx.agent.set_goal("a new goal")
        return "changed"

    turns = [Turn(tool_calls=[("change", {})]), "ok", "again"]
    async with stage(turns, Plugin("tool", "change", change)) as agent:
        await agent.invoke("hi")
        assert "a new goal" in texts(agent.scripted.requests[1])[-1]
        await agent.invoke("and")
        kit.assert_valid(agent.session.messages())


async def test_goal_survives_a_compaction(stage, kit):
    @hookimpl
    def compaction(event):
        return Compacted("short")

    plugin = Plugin("hook", "short", type("Short", (), {"compaction": staticmethod(compaction)})())
    settings = {"agent": {"model": "scripted:test", "compaction": {"keep": 10}}}
    async with stage(["one", "two", "three"], plugin, settings=settings) as agent:
        await agent.set_goal("all tests pass")
        await agent.invoke("word " * 500)
        await agent.invoke("again")
        assert await agent.compact()
        await agent.invoke("and")
        assert "all tests pass" in texts(agent.scripted.requests[-1])[-1]


async def test_goal_is_restored_with_its_session(stage, seen):
    events, plugin = seen
    async with stage(["one"], plugin) as agent:
        await agent.set_goal("all tests pass")
        await agent.invoke("first")
        first = agent.session.id
        await agent.new_session()
        assert agent.goal is None
        await agent.switch_session(first)
        assert agent.goal == "all tests pass"
        await agent.new_session()
        async with Agent(agent.host, session=first) as other:
            assert other.goal == "all tests pass"
    assert outline(events)[1:] == [
        (None, "all tests pass", "restored"),
        ("all tests pass", None, "restored"),
        (None, "all tests pass", "restored"),
        ("all tests pass", None, "restored"),
    ]
    assert {one.session for one in events[::2]} == {first}


async def test_rewind_and_fork_restore_the_goal_of_their_entry(stage, seen):
    _, plugin = seen
    async with stage([], plugin) as agent:
        await agent.set_goal("first goal")
        back = agent.session.leaf
        await agent.set_goal("second goal")
        await agent.fork()
        assert agent.goal == "second goal"
        await agent.rewind(back)
        assert agent.goal == "first goal"


async def test_goal_is_exported_and_imported(stage, tmp_path):
    async with stage(["one"]) as agent:
        await agent.set_goal("all tests pass")
        await agent.invoke("first")
        file = tmp_path / "session.jsonl"
        write_file(file, await agent.sessions.export(agent.session.id))
        await agent.new_session()
        imported, notices = await agent.sessions.import_(read_file(file))
        assert (await agent.sessions.read(imported.id)).context().goal == "all tests pass"
        assert not [one for one in notices if "understood" in one]


async def test_overlong_goal_of_an_imported_session_is_cut(stage):
    async with stage(["one"]) as agent:
        await agent.session.append(GoalEntry(goal="x" * 100_000))
        await agent.invoke("first")
        assert len(texts(agent.scripted.requests[0])[-1]) < 5_000


async def test_child_does_not_have_the_goal_of_its_parent(stage, kit):
    @tool("helper")
    async def helper(params: kit.Text, ctx) -> str:
        """Delegate to a child."""
        return (await ctx.spawn_child("do it")).text

    turns = [Turn(tool_calls=[("helper", {})]), "done", "ok"]
    async with stage(turns, Plugin("tool", "helper", helper)) as agent:
        await agent.set_goal("all tests pass")
        await agent.invoke("hi")
        assert texts(agent.scripted.requests[1]) == ["do it"]


async def test_lone_surrogate_in_a_goal_does_not_reach_the_model(stage):
    async with stage(["ok"]) as agent:
        await agent.set_goal("a \ud800 b")
        assert (await agent.invoke("hi")).status == "completed"
        assert "a \ufffd b" in agent.scripted.requests[0].messages[-1].text
