"""Every hook is called, in the documented order and with the documented fields."""

import anyio
import pytest
import sideband_guard_approval.plugin
import sideband_shell.plugin
from sideband import Plugin
from sideband.hooks import HOOK_SPECS, Compacted, Deny, Handled, Retry, Route, Transform, hookimpl
from sideband.messages import UserMessage, to_data
from sideband.providers import ProviderRefused
from sideband.tools import tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

IN_ORDER = """
session_start
agent_start input routes sections before_agent_start context
message_start message_end
turn_start tool_selection ephemeral before_provider_request op_call effect model_error retry_start
tool_selection ephemeral before_provider_request op_call
message_start message_update effect after_provider_response retry_end message_end
tool_call tool_execution_start op_call tool_progress tool_execution_update effect tool_progress tool_result
tool_execution_end
message_start message_end turn_end
turn_start tool_selection ephemeral before_provider_request op_call message_start effect
after_provider_response answer message_update message_end turn_end
agent_end save_point
settled
agent_start input routes message_start message_end
message_start message_update message_end route_end
agent_end save_point
settled
compaction_start compaction context session_compact compaction_end save_point
session_before_fork session_shutdown session_start
session_before_switch session_shutdown session_start
model_select
agent_start input routes sections before_agent_start context
message_start message_end
turn_start tool_selection ephemeral before_provider_request op_call effect model_error
agent_error agent_end save_point settled
chat_commands
status_line
client_servers
session_shutdown
"""


CHANGES_IN_ORDER = """
session_start
session_start subagent_start agent_start input before_agent_start context
message_start message_end
turn_start tool_selection ephemeral before_provider_request op_call message_start effect
after_provider_response answer message_update message_end turn_end
agent_end save_point settled
subagent_end session_shutdown
thinking_level_select goal_update goal_update
approval_mode_select
user_bash op_call effect message_start message_end
session_before_tree session_tree thinking_level_select
queue_update queue_update session_shutdown
"""


def everything(events):
    """Build a guard that collects the events of all hooks and answers some of them."""

    def make(name):
        def listen(event, ctx):
            events.append(event)
            if name == "model_error" and event.model == "scripted:test":
                return Retry(0, "overloaded")
            if name == "compaction":
                return Compacted("a summary")
            if name == "routes":
                return [Route("ping", "^ping$", lambda request, ctx: "pong")]
            return None

        listen.__name__ = name
        return hookimpl(listen)

    return type("Everything", (), {name: staticmethod(make(name)) for name in HOOK_SPECS})


async def scenario(stage, kit):
    from sideband.hooks import ChatCommands, StatusLine

    events = []

    @tool("work")
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        await ctx.progress(current=1, total=1, message="done")
        return "worked " * 400

    turns = [
        ProviderRefused("scripted", "overloaded", status=529),
        Turn(tool_calls=[("work", {"text": "x"})]),
        "all done",
        ProviderRefused("scripted", "no such model", status=404),
    ]
    settings = {"agent": {"model": "scripted:test", "compaction": {"keep": 10}, "context_window": 100_000}}
    plugins = [Plugin("tool", "work", work), Plugin("guard", "everything", everything(events))]
    async with stage(turns, *plugins, settings=settings) as agent:
        await agent.invoke("please work")
        await agent.invoke("ping")
        assert await agent.compact("keep the names")
        await agent.fork()
        await agent.new_session()
        await agent.select_model("scripted:other")
        await agent.invoke("again")
        await agent.hooks.collect(ChatCommands())
        await agent.hooks.collect(StatusLine())
        await agent.offer_servers(())
    return events


async def changes(stage, kit):
    """Return the events of what a user or a plugin does to an agent between runs."""
    events = []
    plugins = [
        kit.echo,
        Plugin("op", "shell", sideband_shell.plugin),
        Plugin("guard", "everything", everything(events)),
        Plugin("guard", "approval", sideband_guard_approval.plugin),
    ]
    settings = {"agent": {"model": "scripted:test", "context_window": 100_000}, "policy": {"isolation": "none"}}
    async with stage(["a child's answer"], *plugins, settings=settings) as agent:
        await agent.spawn_child("count")
        await agent.select_thinking("high")
        await agent.set_goal("count everything")
        await agent.end_goal("reached")
        await agent.select_approval_mode("semi")
        await agent.run_program(["true"])
        await agent.rewind(None)
        agent.steer("in euros")
        agent.clear_queues()
    return events


async def test_hooks_are_called_in_the_documented_order_and_count(stage, kit):
    called = outline(await scenario(stage, kit))
    assert called == IN_ORDER.split()


async def test_hooks_of_changes_are_called_in_the_documented_order(stage, kit):
    called = outline(await changes(stage, kit))
    assert called == CHANGES_IN_ORDER.split()


def outline(events):
    """Return the names of the hooks in order. A text arrives in any number of pieces."""
    at_start = {"redactors", "resources_discover"}  # called when the host opens, and when it searches for skills
    names = [event.hook for event in events if event.hook not in at_start]
    return [name for i, name in enumerate(names) if (name, names[i - 1]) != ("message_update", "message_update")]


async def test_events_have_the_documented_fields(stage, kit):
    events = await scenario(stage, kit)
    first = {}
    for event in events:
        first.setdefault(event.hook, event)
    run = first["agent_start"].run
    assert first["input"].text == "please work"
    assert first["before_agent_start"].prompt == "please work"
    assert [one["role"] for one in first["context"].messages] == ["user"]
    assert first["turn_start"].run == run
    assert first["turn_start"].index == 0
    assert first["before_provider_request"].model == "scripted:test"
    assert [one["name"] for one in first["before_provider_request"].options["tools"]] == ["work"]
    assert first["model_error"].error["status"] == 529
    assert (first["model_error"].run, first["model_error"].attempt) == (run, 1)
    assert (first["retry_start"].attempt, first["retry_start"].error["kind"]) == (1, "overloaded")
    assert (first["retry_end"].attempts, first["retry_end"].success) == (1, True)
    assert first["tool_call"].tool == "work"
    assert first["tool_call"].arguments == {"text": "x"}
    assert first["tool_execution_start"].id == first["tool_call"].id
    assert (first["tool_execution_update"].current, first["tool_execution_update"].message) == (1, "done")
    assert first["tool_result"].content.startswith("worked ")
    assert first["tool_execution_end"].ms > 0
    assert first["turn_end"].message["role"] == "assistant"
    assert [one["role"] for one in first["turn_end"].tool_results] == ["tool"]
    assert first["agent_end"].reason == "completed"
    assert [one["role"] for one in first["agent_end"].messages] == ["user", "assistant", "tool", "assistant"]
    assert first["save_point"].entry
    assert first["compaction"].instructions == "keep the names"
    assert first["session_compact"].plugin == "everything"
    assert first["session_before_fork"].position == "at"
    assert first["session_before_switch"].reason == "new"
    assert (first["model_select"].model, first["model_select"].previous) == ("scripted:other", "scripted:test")
    assert first["agent_error"].error["code"] == "provider.refused"
    assert [event.reason for event in events if event.hook == "session_start"] == ["startup", "fork", "new"]
    assert [event.reason for event in events if event.hook == "session_shutdown"] == ["fork", "new", "quit"]
    effects = [event for event in events if event.hook == "effect" and event.origin.run == run]
    assert [(event.op, event.status, event.origin.step) for event in effects] == [
        ("llm.generate", "failed", "0"),
        ("llm.generate", "done", "0"),
        ("tool.call", "done", "0.0"),
        ("llm.generate", "done", "1"),
    ]


async def test_changed_input_is_stored(stage, kit):
    def shout(event):
        return Transform(event.text.upper())

    plugin = Plugin("hook", "shout", kit.hooks(input=shout))
    plugin.value.input.__name__ = "input"
    async with stage(["ok"], plugin) as agent:
        await agent.invoke("quiet")
        assert agent.session.messages()[0].text == "QUIET"


async def test_handled_input_calls_no_model_and_stores_nothing(stage, kit):
    def ping(event):
        return Handled("pong") if event.text == "ping" else None

    async with stage([], Plugin("hook", "ping", kit.hooks(input=ping))) as agent:
        result = await agent.invoke("ping")
        assert not agent.session.messages()
        assert not agent.scripted.requests
    assert (result.status, result.text) == ("completed", "pong")


async def test_context_hook_changes_the_visible_and_not_the_stored_messages(stage, kit):
    def forget(event):
        return [*event.messages[-1:]]

    async with stage(["one", "two"], Plugin("hook", "forget", kit.hooks(context=forget))) as agent:
        await agent.invoke("first")
        await agent.invoke("second")
        assert [one.text for one in agent.scripted.requests[1].messages] == ["second"]
        assert len(agent.session.messages()) == 4


async def test_invalid_messages_of_plugins_are_ignored(stage, kit):
    def nonsense(event):
        return [{"role": "wizard"}]

    plugin = Plugin("hook", "nonsense", kit.hooks(context=nonsense, ephemeral=lambda event: [{"text": "?"}]))
    plugin.value.ephemeral.__name__ = "ephemeral"
    async with stage(["one"], plugin) as agent:
        result = await agent.invoke("first")
        assert [one.text for one in agent.scripted.requests[0].messages] == ["first"]
    assert result.status == "completed"


async def test_ephemeral_messages_are_sent_once_and_not_stored(stage, kit):
    def weather(event):
        return [to_data(UserMessage(content="it rains", source="weather"))]

    turns = [Turn(tool_calls=[("echo", {"text": "x"})]), "ok"]
    async with stage(turns, kit.echo, Plugin("hook", "weather", kit.hooks(ephemeral=weather))) as agent:
        await agent.invoke("hi")
        assert [request.messages[-1].text for request in agent.scripted.requests] == ["it rains", "it rains"]
        assert not [one for one in agent.session.messages() if one.text == "it rains"]


async def test_request_with_an_orphaned_call_is_repaired(stage, kit):
    import attrs

    def drop_results(event):
        return attrs.evolve(event, messages=[one for one in event.messages if one["role"] != "tool"])

    plugin = Plugin("hook", "dropper", kit.hooks(before_provider_request=drop_results))
    async with stage([Turn(tool_calls=[("echo", {"text": "x"})]), "ok"], kit.echo, plugin) as agent:
        await agent.invoke("hi")
        kit.assert_valid(agent.scripted.requests[1].messages)


async def test_changed_system_prompt_applies_to_one_run(stage, kit):
    def invoice(event):
        return f"{event.system_prompt} In euros." if "invoice" in event.prompt else None

    def sections(event):
        from sideband.hooks import Section

        return [Section("base", "You help.")]

    plugin = Plugin("hook", "prompts", kit.hooks(before_agent_start=invoice, sections=sections))
    async with stage(["one", "two"], plugin) as agent:
        await agent.invoke("an invoice")
        await agent.invoke("a poem")
        assert [request.system for request in agent.scripted.requests] == ["You help. In euros.", "You help."]


async def test_prompt_is_built_once_per_channel(stage, kit):
    from sideband.hooks import Section

    built = []

    def sections(event):
        built.append(event.channel)
        return [Section("count", f"built {len(built)} times")]

    async with stage(
        ["one", "two"], Plugin("hook", "prompts", kit.hooks(sections=sections)), channel="server"
    ) as agent:
        await agent.invoke("a")
        await agent.invoke("b")
        assert len({request.system for request in agent.scripted.requests}) == 1
    assert built == ["server"]


async def test_plugin_can_deny_leaving_the_session(stage, kit):
    from sideband.hooks import Cancel
    from sideband_agent import StructureRefused

    def stay(event):
        return Cancel("draft.md is not saved")

    async with stage([], Plugin("hook", "keeper", kit.hooks(session_before_switch=stay))) as agent:
        before = agent.session.id
        with pytest.raises(StructureRefused, match=r"draft\.md is not saved"):
            await agent.new_session()
        assert agent.session.id == before
        assert agent.is_idle


async def test_guard_can_deny_a_tool_call(stage, kit):
    def deny(event):
        return Deny("not here")

    turns = [Turn(tool_calls=[("echo", {"text": "x"})]), "ok"]
    async with stage(turns, kit.echo, Plugin("guard", "sentry", kit.guard(tool_call=deny))) as agent:
        await agent.invoke("hi")
        assert "not here" in agent.session.messages()[2].text


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_hanging_observer_does_not_block_the_run(stage, kit):
    async def turn_start(event):
        await anyio.sleep_forever()

    settings = {"agent": {"model": "scripted:test"}, "policy": {"deadlines": {"turn_start": 0.1}}}
    plugin = Plugin("hook", "sleeper", kit.hooks(turn_start=turn_start))
    with anyio.fail_after(20):
        async with stage(["ok"], plugin, settings=settings) as agent:
            assert (await agent.invoke("hi")).status == "completed"


async def test_listener_receives_the_same_events_as_plugins(stage, kit):
    by_plugin, by_listener = [], []
    turns = [Turn(tool_calls=[("echo", {"text": "x"})]), "ok"]
    plugin = Plugin("hook", "ears", kit.listening(by_plugin))
    settings = {"agent": {"model": "scripted:test", "context_window": 100_000}}
    async with stage(turns, kit.echo, plugin, settings=settings, on_event=by_listener.append) as agent:
        await agent.invoke("hi")
    assert by_listener == by_plugin
    assert {event.op for event in by_listener if event.hook == "effect"} == {"llm.generate", "tool.call"}


async def test_failing_listener_does_not_affect_the_run(stage):
    def listener(event):
        raise RuntimeError("out of order")

    async with stage(["ok"], on_event=listener) as agent:
        assert (await agent.invoke("hi")).status == "completed"


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_empty_input_is_rejected(stage, text):
    from sideband_agent import InputEmpty

    async with stage([]) as agent:
        with pytest.raises(InputEmpty):
            await agent.invoke(text)
        assert not agent.session.messages()
