"""Tools of one session: offered and withdrawn by the program, or listed by sources of the session."""

from collections import Counter
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
from attrs import evolve
from sideband import Level, Plugin
from sideband.approvals import Approval
from sideband.hooks import Ask, hookimpl
from sideband.ledger import query
from sideband.tools import Tool, tool
from sideband_agent import Agent, ToolRefused
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


def make(name, answer="done", description="", **options):
    async def run(arguments, ctx):
        return answer

    return Tool(name, description, {"type": "object", "properties": {}}, dict, run, **options)


class Source:
    """A source of a session, opened once for each."""

    scope = "session"

    def __init__(self, name, *tools):
        self.name, self.tools = name, tools
        self.seen = Counter()
        self.contexts = []

    @asynccontextmanager
    async def open(self, ctx):
        self.seen["open"] += 1
        self.contexts.append(ctx)
        try:
            yield SimpleNamespace(list=self.list, changed=anyio.sleep_forever)
        finally:
            self.seen["close"] += 1

    async def list(self):
        return list(self.tools)


class Named(Source):
    name = "named"


def call(*names):
    return Turn(tool_calls=[(name, {}) for name in names])


def sent(request):
    return [one.name for one in request.tools]


def results(agent):
    return [one for one in agent.session.messages() if one.role == "tool"]


async def until(condition):
    """Wait until a condition holds."""
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110  there is no event for each condition
            await anyio.sleep(0.001)


# Tools of the program


async def test_own_tools_belong_to_one_agent(stage, kit):
    async with stage([call("look_up"), "ok"], kit.echo, own_tools=[make("look_up", "found")]) as agent:
        await agent.invoke("hi")
        assert results(agent)[0].text == "found"
        assert sent(agent.scripted.requests[0]) == ["echo", "look_up"]
        assert agent.tools.get("look_up").source == "session"
        async with Agent(agent.host) as other:
            assert other.tools.names == ("echo",)


async def test_call_of_an_own_tool_is_recorded_as_an_effect_of_its_session(stage, kit):
    async with stage([call("look_up"), "ok"], own_tools=[make("look_up", level=Level.CONTROLLED)]) as agent:
        await agent.invoke("hi")
        (record,) = await query(agent.host.ledger.folder, op="tool.call")
        assert (record.params["tool"], record.level, record.status) == ("look_up", Level.CONTROLLED, "done")
        assert record.origin.session == agent.session.id


async def test_offered_and_withdrawn_tools_change_the_next_turn(stage, kit):
    @tool("swap")
    async def swap(params: kit.Text, ctx) -> str:
        """Swap tools."""
        ctx.agent.offer(make("new"))
        ctx.agent.withdraw("old")
        return "swapped"

    async with stage([call("swap"), "ok"], Plugin("tool", "swap", swap), own_tools=[make("old")]) as agent:
        await agent.invoke("hi")
        assert [sent(one) for one in agent.scripted.requests] == [["old", "swap"], ["new", "swap"]]
        assert agent.withdraw("new")
        assert not agent.withdraw("new")
        assert agent.tools.names == ("swap",)


async def test_call_that_is_running_while_its_tool_is_withdrawn_ends_and_later_ones_are_not_run(stage, kit):
    ran = Counter()

    async def run(arguments, ctx):
        ran["slow"] += 1
        assert agent.withdraw("slow")
        await ctx.dispatch("llm.models", {})
        return "finished"

    slow = Tool("slow", "", {"type": "object"}, dict, run, exclusive=True)
    async with stage([call("slow", "slow"), call("slow"), "ok"], own_tools=[slow]) as agent:
        assert (await agent.invoke("hi")).status == "completed"
        first, second, third = results(agent)
    assert first.text == "finished"
    assert "was removed or changed before this call began" in second.text
    assert "unknown tool `slow`" in third.text
    assert ran["slow"] == 1


async def test_tool_that_is_offered_again_with_another_function_is_the_one_that_runs(stage, kit):
    @tool("swap", exclusive=True)
    async def swap(params: kit.Text, ctx) -> str:
        """Replace the tool."""
        agent.withdraw("look_up")
        agent.offer(make("look_up", "new"))
        return "swapped"

    plugin = Plugin("tool", "swap", swap)
    async with stage([call("swap", "look_up"), "ok"], plugin, own_tools=[make("look_up", "old")]) as agent:
        await agent.invoke("hi")
        assert results(agent)[1].text == "new"


@pytest.mark.parametrize(
    ("offered", "problem"),
    [
        (make("echo"), "plugin echo has its name"),
        (make("mine"), "the session has a tool of this name"),
        (make("Bad name"), "its name, set by session, is invalid: expected `name` or `family.name`"),
        (make("large", description="x" * 100_000), "exceeds 65,536"),
        (make("notes.x"), "a source of the session has its name"),
        (Source("echo"), "the source `echo` was not opened: plugin echo has its name"),
        (Source("mine"), "the session has another one with its name"),
        (Source("notes"), "the session has another one with its name"),
        (Source("Bad"), "expected a tool or a source of tools for a session, got a Source"),
        (Named, "expected a tool or a source of tools for a session, got the class Named"),
        ("mine", "expected a tool or a source of tools for a session, got a str"),
    ],
)
async def test_tool_or_source_whose_name_is_invalid_or_taken_is_refused(stage, kit, offered, problem):
    async with stage(["ok"], kit.echo, own_tools=[make("mine"), Source("notes")]) as agent:
        before = agent.tools.names
        with pytest.raises(ToolRefused, match=problem):
            agent.offer(offered)
        assert agent.tools.names == before


@pytest.mark.parametrize("validate", [lambda arguments: None, lambda arguments: arguments["missing"]])
async def test_tool_whose_validation_fails_is_not_run_and_the_model_learns_whose_fault_it_is(stage, validate):
    broken = evolve(make("look_up"), validate=validate)
    async with stage([call("look_up"), "ok"], own_tools=[broken]) as agent:
        await agent.invoke("hi")
        (result,) = results(agent)
    assert result.text.startswith("look_up failed to validate its arguments")
    assert result.text.endswith("The tool was not run.")


async def test_source_of_a_host_cannot_be_offered_to_an_agent(stage, kit):
    source = Source("notes")
    source.scope = "host"
    async with stage(["ok"]) as agent:
        with pytest.raises(ToolRefused, match="expected a tool or a source of tools"):
            agent.offer(source)


async def test_offered_tools_never_widen_a_restricted_agent(stage, kit):
    async with stage(["ok"], kit.echo, tools=["echo", "a*"]) as agent:
        with pytest.raises(ToolRefused, match="the tools of the agent are restricted"):
            agent.offer(make("look_up"))
        agent.offer(make("allowed"))
        assert agent.tools.names == ("allowed", "echo")
        async with Agent(agent.host, sources=["plugin *"]) as other:
            with pytest.raises(ToolRefused, match="restricted"):
                other.offer(make("allowed"))


async def test_agent_whose_own_tools_are_refused_is_not_opened(stage, kit):
    source = Source("notes", make("notes"))
    async with stage(["ok"], kit.echo) as agent:
        with pytest.raises(ToolRefused):
            async with Agent(agent.host, own_tools=[source, make("echo")]):
                pass
        await until(lambda: source.seen["close"] == source.seen["open"])


async def test_tool_is_withdrawn_by_its_name_only(stage):
    tool = make("look_up")
    async with stage(["ok"], own_tools=[tool]) as agent:
        with pytest.raises(TypeError, match="expected the name of a tool or of a source of tools, got a Tool"):
            agent.withdraw(tool)
        assert agent.tools.names == ("look_up",)


async def test_program_can_wait_for_the_sources_of_a_session(stage):
    async with stage([call("notes"), "ok"], own_tools=[Source("notes", make("notes"))]) as agent:
        with anyio.fail_after(30):
            await agent.wait_for_sources()
        await agent.invoke("hi")
        assert results(agent)[0].text == "done"


async def test_tool_of_the_host_that_appears_later_does_not_replace_an_own_tool(stage, kit):
    class Later:
        name, scope = "look", "host"
        tools = ()

        def __init__(self):
            self.announced = anyio.Event()

        @asynccontextmanager
        async def open(self, ctx):
            yield self

        async def list(self):
            return list(self.tools)

        async def changed(self):
            await self.announced.wait()
            self.announced = anyio.Event()

    source = Later()
    plugin = Plugin("tool", "desk", SimpleNamespace(sideband_tools=lambda: [source]))
    async with stage([call("look__up"), "ok"], plugin, own_tools=[make("look.up", "mine")]) as agent:
        source.tools = [make("look.up", "theirs")]
        source.announced.set()
        await until(lambda: agent.host.tools.current.view.names == ("look.up",))
        await agent.invoke("hi")
        assert results(agent)[0].text == "mine"
        assert agent.tool_problems == ("omitted the tool `look.up` of source look: the session has one with its name",)


async def test_own_tools_stay_when_the_agent_switches_sessions(stage, kit):
    async with stage(["ok"], own_tools=[make("look_up")]) as agent:
        agent.offer(make("more"))
        await agent.new_session()
        assert agent.tools.names == ("look_up", "more")
        await agent.reload()
        assert agent.tools.names == ("look_up", "more")


async def test_child_agents_may_use_own_tools_until_they_are_withdrawn(stage, kit, caplog):
    @tool("delegate")
    async def delegate(params: kit.Text, ctx) -> str:
        """Let a child work."""
        return (await ctx.spawn_child("work", tools=["one", "two"])).text

    async def take(arguments, ctx):
        with pytest.raises(ToolRefused, match="a child agent has only tools of its parent"):
            ctx.agent.offer(make("more"))
        agent.withdraw("two")
        agent.offer(make("more"))
        return "taken"

    one = Tool("one", "", {"type": "object"}, dict, take, exclusive=True)
    turns = [call("delegate"), call("one", "two", "more"), "child", "ok"]
    plugin = Plugin("tool", "delegate", delegate)
    async with stage(turns, plugin, own_tools=[one, make("two")]) as agent:
        await agent.invoke("hi")
        answers = [message.text for message in agent.scripted.requests[2].messages if message.role == "tool"]
    assert answers[0] == "taken"
    assert "was removed or changed" in answers[1]
    assert "unknown tool `more`" in answers[2]
    assert not caplog.records, "the tools of a child are known to its parent"


async def test_resumed_session_whose_own_tools_are_gone_continues_without_them(stage, kit, tmp_path):
    home = tmp_path / "kept"

    async def stop(arguments, ctx):
        ctx.agent.abort()
        await anyio.sleep_forever()

    slow = Tool("slow", "", {"type": "object"}, dict, stop)
    async with stage([call("slow"), "unused"], home=home, own_tools=[slow]) as agent:
        assert (await agent.invoke("hi")).status == "aborted"
        session = agent.session.id
    async with stage([call("slow"), "ok"], home=home, session=session) as agent:
        result = await agent.invoke("go on")
        assert result.status == "completed"
        assert sent(agent.scripted.requests[0]) == []
        assert "unknown tool `slow`" in results(agent)[-1].text
        kit.assert_valid(agent.session.messages())


# Sources of a session


async def test_source_of_a_session_is_opened_for_each_with_the_context_of_its_agent(stage, kit):
    source = Source("notes", make("notes.add", "added"))
    plugin = Plugin("tool", "desk", SimpleNamespace(sideband_tools=lambda: [source]))
    async with stage([call("notes__add"), "ok"], plugin) as agent:
        await until(lambda: agent.tools.names == ("notes.add",))
        assert agent.tools.get("notes.add").source == "session notes"
        async with Agent(agent.host) as other:
            await until(lambda: other.tools.names == ("notes.add",))
            assert [ctx.session.id for ctx in source.contexts] == [agent.session.id, other.session.id]
            assert {ctx.plugin for ctx in source.contexts} == {"desk"}
        assert source.seen == {"open": 2, "close": 1}
        await agent.invoke("hi")
        assert results(agent)[0].text == "added"
        await agent.new_session()
        await until(lambda: source.seen["open"] == 3)
        assert source.seen["close"] == 2
    assert source.seen["close"] == 3


async def test_effects_of_tools_of_a_session_source_have_its_plugin(stage, kit):
    async def run(arguments, ctx):
        return await ctx.dispatch("llm.models", {})

    source = Source("notes", Tool("notes.add", "", {"type": "object"}, dict, run))
    plugin = Plugin("tool", "desk", SimpleNamespace(sideband_tools=lambda: [source]))
    async with stage([call("notes__add"), "ok"], plugin) as agent:
        await until(lambda: agent.tools.names == ("notes.add",))
        await agent.invoke("hi")
        records = await query(agent.host.ledger.folder, op="llm.models")
        assert ("desk", "notes.add") in [(one.origin.plugin, one.origin.tool) for one in records]


async def test_source_is_closed_before_it_is_opened_for_another_session(stage, kit):
    steps = []

    class Exclusive(Source):
        @asynccontextmanager
        async def open(self, ctx):
            steps.append("open")
            try:
                async with super().open(ctx) as opened:
                    yield opened
            finally:
                for _ in range(10):
                    await anyio.lowlevel.checkpoint()
                steps.append("closed")

    async with stage(["ok"], own_tools=[Exclusive("notes", make("notes"))]) as agent:
        await until(lambda: agent.tools.names == ("notes",))
        await agent.new_session()
        await until(lambda: agent.tools.names == ("notes",))
        assert steps == ["open", "closed", "open"]
    assert steps == ["open", "closed", "open", "closed"]


async def test_second_source_of_a_session_with_the_same_name_is_refused(stage, kit):
    one, two = Source("notes", make("notes.a")), Source("notes", make("notes.b"))
    both = SimpleNamespace(sideband_tools=lambda: [one]), SimpleNamespace(sideband_tools=lambda: [two])
    async with stage(["ok"], Plugin("tool", "a", both[0]), Plugin("tool", "b", both[1])) as agent:
        await until(lambda: agent.tools.names == ("notes.a",))
        assert agent.tool_problems == ("the source `notes` was not opened: the session has another one with its name",)
    assert not two.seen


async def test_hanging_source_of_a_session_does_not_delay_its_agent(stage, kit):
    class Hanging(Source):
        @asynccontextmanager
        async def open(self, ctx):
            self.seen["open"] += 1
            await anyio.sleep_forever()
            yield

    source = Hanging("notes")
    async with stage(["ok"], own_tools=[source]) as agent:
        with anyio.fail_after(60):
            assert (await agent.invoke("hi")).status == "completed"
            await until(lambda: source.seen["open"])
            await agent.new_session()


async def test_withdrawn_source_loses_its_tools_at_once_and_is_closed(stage, kit):
    source = Source("notes", make("notes.a"))
    async with stage(["ok"], own_tools=[source]) as agent:
        await until(lambda: agent.tools.names == ("notes.a",))
        assert agent.withdraw("notes")
        assert agent.tools.names == ()
        await until(lambda: source.seen["close"])
        agent.offer(make("notes.a"))
        assert agent.tools.names == ("notes.a",)


async def test_tool_whose_parameters_were_changed_in_place_is_not_called_as_the_model_knew_it(stage, kit):
    parameters = {"type": "object", "properties": {}}
    look_up = evolve(make("look_up"), parameters=parameters)

    @tool("swap", exclusive=True)
    async def swap(params: kit.Text, ctx) -> str:
        """Change the tool."""
        agent.withdraw("look_up")
        parameters["properties"]["address"] = {"type": "string"}
        agent.offer(look_up)
        return "swapped"

    plugin = Plugin("tool", "swap", swap)
    async with stage([call("swap", "look_up"), "ok"], plugin, own_tools=[look_up]) as agent:
        await agent.invoke("hi")
        assert "was removed or changed before this call began" in results(agent)[1].text


async def test_tool_of_a_source_that_may_appear_later_is_not_reported_as_unknown(stage, caplog):
    shared = Source("tickets")
    shared.scope = "host"
    desk = SimpleNamespace(sideband_tools=lambda: [Source("notes", make("notes.a")), shared])
    own, names = [Source("mine", make("mine.a"))], ["notes__a", "mine.*", "tickets.a", "other.a"]
    async with stage(["ok"], Plugin("tool", "desk", desk), own_tools=own, tools=names) as agent:
        await until(lambda: agent.tools.names == ("mine.a", "notes.a"))
    assert [one.message for one in caplog.records if "unknown" in one.message] == ["unknown tool `other.a`"]


# Approvals of tools


@pytest.fixture
def asked():
    """The questions that were asked about tools."""
    return []


@pytest.fixture
def asking(stage, asked):
    """Open an agent that asks about each tool call. Each question is answered with the scope."""

    async def approve(request):
        asked.append(request.question)
        return Approval("allow", scopes[0])

    def open_stage(turns, *plugins, scope, **options):
        scopes[:] = [scope]
        guard = type("Sentry", (), {"tool_call": hookimpl(lambda self, event: Ask("Really?"))})
        return stage(turns, Plugin("guard", "sentry", guard), *plugins, approver=approve, **options)

    scopes = []
    return open_stage


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        ({}, 1),
        ({"description": "Look. And send it."}, 2),
        ({"level": Level.RESTRICTED}, 2),
        ({"read_only": True}, 2),
    ],
)
async def test_approval_of_a_tool_ends_when_its_declaration_changes(asking, asked, changes, number):
    turns = [call("look_up"), "ok", call("look_up"), "ok"]
    async with asking(turns, scope="session", own_tools=[make("look_up", description="Look.")]) as agent:
        await agent.invoke("hi")
        agent.withdraw("look_up")
        agent.offer(make("look_up", **{"description": "Look.", **changes}))
        await agent.invoke("again")
    assert len(asked) == number


def provided(kind, name, distribution):
    """Return a plugin with the tool `desk.look`, of its own or of a source."""
    source = Source("desk", make("desk.look"))
    source.scope = kind
    items = [make("desk.look")] if kind == "plugin" else [source]
    return Plugin("tool", name, SimpleNamespace(sideband_tools=lambda: items), distribution=distribution)


@pytest.mark.parametrize(
    ("plugins", "number"),
    [
        *[([provided(kind, "desk", "one")] * 2, 1) for kind in ("plugin", "host", "session")],
        *[([provided(kind, "desk", one) for one in ("one", "two")], 2) for kind in ("plugin", "host", "session")],
        *[([provided(kind, one, "one") for one in ("desk", "other")], 2) for kind in ("host", "session")],
    ],
)
async def test_lasting_approval_of_a_tool_is_for_the_package_that_provides_it(asking, asked, tmp_path, plugins, number):
    for plugin in plugins:
        async with asking([call("desk__look"), "ok"], plugin, scope="always", home=tmp_path / "kept") as agent:
            await until(lambda one=agent: one.tools.names == ("desk.look",))
            await agent.invoke("hi")
            assert results(agent)[0].text == "done"
    assert len(asked) == number
