"""Routes of plugins answer inputs before the model, and never lose an input."""

import re
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import attrs
import pytest
from sideband import Plugin
from sideband.hooks import Handled, Route, Section, Transform, hookimpl
from sideband.messages import AssistantMessage, ImagePart, UserMessage
from sideband.providers import ANSWER_LIMITS
from sideband.tools import tool
from sideband_agent._router import open_route
from sideband_agent.sessions import MessageEntry, RouteEntry, RunEntry, record_of

pytestmark = pytest.mark.anyio


def routing(*routes, name="greeter", **others):
    """Build a plugin with these routes, and with implementations of other hooks."""

    def add(event):
        return [*routes]

    functions = {"routes": add, **others}
    for hook, function in functions.items():
        function.__name__ = hook
    return Plugin("hook", name, SimpleNamespace(**{hook: hookimpl(one) for hook, one in functions.items()}))


def entries(agent):
    return [(one.name, one.status) for one in agent.session.path() if isinstance(one, RouteEntry)]


def reasons(agent):
    return [one.reason for one in agent.session.path() if isinstance(one, RouteEntry)]


def texts(agent):
    return [(one.role, one.text) for one in agent.session.messages()]


def reply(text):
    return lambda request, ctx: text


PING = Route("ping", "^ping$", reply("pong"))


async def test_reply_of_a_route_completes_the_run_without_a_model_call(stage):
    async with stage([], routing(PING)) as agent:
        result = await agent.invoke("ping")
        assert not agent.scripted.requests
        assert (result.status, result.text) == ("completed", "pong")
        assert texts(agent) == [("user", "ping"), ("assistant", "pong")]
        assert result.messages[1].metadata == {"route": "ping", "plugin": "greeter"}
        assert entries(agent) == [("ping", "started"), ("ping", "handled")]
        assert reasons(agent) == ["matched `^ping$`"] * 2
        assert agent.session.unfinished_run() is None


async def test_input_that_no_route_matches_goes_to_the_model(stage):
    async with stage(["hello"], routing(PING)) as agent:
        assert (await agent.invoke("pingpong")).text == "hello"
        assert entries(agent) == []


async def test_handler_gets_the_input_and_what_its_match_found(stage):
    seen = []

    async def handle(request, ctx):
        seen.append((request, ctx.run, ctx.session.messages()[-1].text))
        return f"Hello, {request.match['name']}!"

    async with stage([], routing(Route("name", re.compile(r"i am (?P<name>\w+)", re.IGNORECASE), handle))) as agent:
        result = await agent.invoke("well, I am Ada")
    ((request, run, stored),) = seen
    assert result.text == "Hello, Ada!"
    assert (request.run, request.text, request.source, request.channel) == (run, "well, I am Ada", "interactive", "cli")
    assert stored == "well, I am Ada"
    assert request.attachments == 0


async def test_handler_can_decline_an_input_with_attachments(stage):
    def describe(request, ctx):
        return None if request.attachments else "no picture"

    picture = ImagePart(media_type="image/png", data="iVBORw0KGgo=")
    async with stage(["a cat"], routing(Route("picture", "what", describe))) as agent:
        assert (await agent.invoke("what is it?")).text == "no picture"
        assert (await agent.invoke("what is it?", attachments=[picture])).text == "a cat"


async def test_match_function_passes_on_what_it_found(stage):
    def find(text):
        return {"words": len(text.split())} if text.startswith("count ") else None

    async with stage(["hm"], routing(Route("count", find, lambda request, ctx: str(request.match)))) as agent:
        assert (await agent.invoke("count the words")).text == "{'words': 3}"
        assert reasons(agent)[0] == "matched by `find`"
        assert (await agent.invoke("hello")).text == "hm"


async def test_match_function_that_returns_false_does_not_match(stage):
    async with stage(["from the model"], routing(Route("no", lambda text: False, reply("x")))) as agent:
        assert (await agent.invoke("hi")).text == "from the model"


async def test_routes_are_tried_by_their_order_then_plugin_then_name(stage):
    tried = []

    def noting(name, **options):
        def handle(request, ctx):
            tried.append(name)

        return Route(name, "", handle, **options)

    plugins = [routing(noting("z"), noting("late", order=9), noting("a"), name="one"), routing(noting("b"), name="two")]
    plugins.append(routing(noting("early", order=-1), name="zoo"))
    async with stage(["ok"], *plugins) as agent:
        await agent.invoke("hi")
    assert tried == ["early", "a", "z", "b", "late"]


async def test_declined_input_goes_to_the_next_route_and_the_decision_is_stored(stage):
    events = []
    plugin = routing(Route("first", "", reply(None)), Route("second", "p", reply("pong")))
    async with stage([], plugin, on_event=events.append) as agent:
        assert (await agent.invoke("ping")).text == "pong"
        assert entries(agent) == [
            ("first", "started"),
            ("first", "declined"),
            ("second", "started"),
            ("second", "handled"),
        ]
    ends = [(one.name, one.plugin, one.reason, one.handled) for one in events if one.hook == "route_end"]
    assert ends == [
        ("first", "greeter", "declined after it matched ``", False),
        ("second", "greeter", "matched `p`", True),
    ]
    assert all(one.ms >= 0 for one in events if one.hook == "route_end")


async def test_input_hook_changes_the_text_before_routes_see_it(stage):
    async with stage([], routing(PING, input=lambda event: Transform("ping"))) as agent:
        assert (await agent.invoke("something")).text == "pong"


async def test_input_that_a_plugin_has_handled_is_not_routed(stage):
    async with stage([], routing(PING, input=lambda event: Handled("mine"))) as agent:
        assert (await agent.invoke("ping")).text == "mine"
        assert entries(agent) == []


async def test_system_prompt_is_not_built_for_a_routed_input(stage):
    built = []

    def sections(event):
        built.append(event)

    async with stage([], routing(PING, sections=sections)) as agent:
        await agent.invoke("ping")
    assert built == []


async def test_model_sees_routed_replies_without_their_metadata(stage):
    async with stage(["fine"], routing(PING)) as agent:
        await agent.invoke("ping")
        await agent.invoke("and now?")
        (request,) = agent.scripted.requests
    assert [one.text for one in request.messages] == ["ping", "pong", "and now?"]
    assert request.messages[1].metadata is None


async def test_reply_is_shown_like_an_answer_of_a_model(stage):
    events = []
    async with stage([], routing(PING), on_event=events.append) as agent:
        await agent.invoke("ping")
    hooks = [one.hook for one in events if one.hook.startswith(("message", "route", "agent"))]
    assert hooks == [
        *("agent_start", "message_start", "message_end", "message_start", "message_update", "message_end"),
        *("route_end", "agent_end"),
    ]
    assert [one.delta for one in events if one.hook == "message_update"] == [{"type": "text", "text": "pong"}]


# Sources


@pytest.mark.parametrize(("source", "routed"), [("api", True), ("schedule", True), ("plugin", False), ("agent", False)])
async def test_inputs_of_users_are_routed_and_others_are_not(stage, source, routed):
    async with stage(["from the model"], routing(PING)) as agent:
        result = await agent.invoke("ping", source=source)
    assert result.text == ("pong" if routed else "from the model")


async def test_task_of_a_child_is_not_routed_and_the_child_has_the_prompt_and_tools_of_its_parent(stage, kit):
    async def delegate(request, ctx):
        return (await ctx.spawn_child("ping")).text

    def sections(event):
        return [Section("style", "Be brief.")]

    plugin = routing(PING, Route("delegate", "^delegate$", delegate), sections=sections)
    async with stage(["from the child's model"], plugin, kit.echo) as agent:
        assert (await agent.invoke("delegate")).text == "from the child's model"
        (request,) = agent.scripted.requests
    assert request.system == "Be brief."
    assert [one.name for one in request.tools] == ["echo"]


async def test_child_of_a_handler_may_call_tools_that_were_offered_since_the_last_turn(stage, kit):
    async def delegate(request, ctx):
        return (await ctx.spawn_child("ping")).text

    @tool("late")
    async def late(params: kit.Text, ctx) -> str:
        """Be late."""
        return ""

    async with stage(["done"], routing(Route("delegate", "", delegate))) as agent:
        agent.offer(late)
        await agent.invoke("hi")
        assert [one.name for one in agent.scripted.requests[0].tools] == ["late"]


async def test_message_that_a_handler_queues_begins_a_run_of_the_model(stage):
    def handle(request, ctx):
        ctx.follow_up("ping")
        return "pong"

    async with stage(["from the model"], routing(Route("loop", "^ping$", handle))) as agent:
        await agent.invoke("ping")
        assert texts(agent) == [
            *[("user", "ping"), ("assistant", "pong")],
            *[("user", "ping"), ("assistant", "from the model")],
        ]


async def test_message_that_a_handler_steers_reaches_the_model(stage):
    def handle(request, ctx):
        ctx.steer("look at the log")
        return "pong"

    async with stage(["I did"], routing(Route("ping", "ping", handle))) as agent:
        assert (await agent.invoke("ping")).text == "I did"
        assert [one.source for one in agent.session.messages() if isinstance(one, UserMessage)] == ["user", "greeter"]


# Failures


async def hang(request, ctx):
    await anyio.sleep_forever()


def cancel(request, ctx):
    raise anyio.get_cancelled_exc_class()


def crash(request, ctx):
    raise ValueError("out of paper")


async def crash_late(request, ctx):
    await anyio.lowlevel.checkpoint()
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        pytest.param(crash, "ValueError: out of paper", id="raises"),
        pytest.param(crash_late, "SystemExit: 3", id="exits"),
        pytest.param(cancel, "CancelledError", id="cancels"),
        pytest.param(hang, "exceeded the deadline of `routes` (0.05 s)", id="hangs"),
        pytest.param(reply(7), "it returned int, but may return str", id="number"),
        pytest.param(reply(" \n"), "the reply is empty; return None to decline", id="empty"),
        pytest.param(reply("x" * (ANSWER_LIMITS.characters + 1)), "the reply exceeds the limit of", id="huge"),
    ],
)
async def test_model_answers_if_a_handler_fails(stage, caplog, handler, problem):
    settings = {"agent": {"model": "scripted:test", "tool_seconds": 0.05 if handler is hang else 60}}
    async with stage(["from the model"], routing(Route("pay", "", handler)), settings=settings) as agent:
        result = await agent.invoke("hi")
        assert result.text == "from the model"
        assert texts(agent) == [("user", "hi"), ("assistant", "from the model")]
        assert entries(agent) == [("pay", "started"), ("pay", "failed")]
        assert [one.status for one in agent.session.path() if one.type == "run"] == ["started", "completed"]
        assert problem in reasons(agent)[1]
        assert "greeter" in reasons(agent)[1]
        assert problem in caplog.text


def broken_match(text):
    raise LookupError("no table")


async def late_match(text):
    await anyio.sleep_forever()


@pytest.mark.parametrize(("match", "problem"), [(broken_match, "LookupError: no table"), (late_match, "deadline")])
async def test_route_whose_match_fails_is_reported_and_skipped(stage, caplog, match, problem):
    settings = {"agent": {"model": "scripted:test"}, "policy": {"deadlines": {"routes": 0.1}}}
    async with stage(["hello"], routing(Route("a", match, reply("x"))), settings=settings) as agent:
        assert (await agent.invoke("hi")).text == "hello"
        assert entries(agent) == []
    assert problem in caplog.text
    assert "plugin `greeter`" in caplog.text


async def test_routes_after_the_deadline_of_all_matches_are_not_tried_nor_blamed(stage, caplog):
    plugins = [routing(Route("a", late_match, reply("x"), order=-1)), routing(Route("b", "", reply("y")), name="other")]
    settings = {"agent": {"model": "scripted:test"}, "policy": {"deadlines": {"routes": 0.1}}}
    async with stage(["hello"], *plugins, settings=settings) as agent:
        assert (await agent.invoke("hi")).text == "hello"
    assert "plugin `greeter`" in caplog.text
    assert "plugin `other`" not in caplog.text


async def test_model_answers_if_the_plugin_of_a_route_is_unloaded_before_its_handler_is_called(stage):
    def unload(event):
        if event.hook == "message_end" and event.message["role"] == "user":
            agent.hooks.unregister("greeter")

    async with stage(["from the model"], routing(PING), on_event=unload) as agent:
        assert (await agent.invoke("ping")).text == "from the model"
        assert reasons(agent)[1] == "the plugin `greeter` was unloaded"


async def test_two_routes_with_one_name_are_an_error_that_names_both(stage, caplog):
    plugin = routing(Route("ping", "one", reply("x")), Route("ping", "two", reply("y")))
    async with stage(["hello"], plugin, routing(PING, name="other")) as agent:
        assert (await agent.invoke("one")).text == "hello"
        assert (await agent.invoke("ping")).text == "pong"
    assert "plugin `greeter` failed in `routes`: ValueError: two routes are named `ping`" in caplog.text
    assert "match='one'" in caplog.text
    assert "match='two'" in caplog.text


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": "No Name"}, ValueError),
        ({"match": "("}, ValueError),
        ({"match": 7}, TypeError),
        ({"match": re.compile(b"x")}, TypeError),
        ({"handler": "x"}, TypeError),
        ({"order": "x"}, TypeError),
    ],
)
def test_invalid_route_is_rejected(fields, error):
    with pytest.raises(error):
        Route(**{"name": "a", "match": "", "handler": print, **fields})


async def test_secrets_in_inputs_and_replies_and_failures_are_redacted(stage):
    seen = []

    def leak(request, ctx):
        seen.append(request.text)
        if "fail" in request.text:
            raise ValueError("s3cr3t-canary is wrong")
        return "it is s3cr3t-canary"

    events = []
    async with stage(["hm"], routing(Route("leak", "", leak)), on_event=events.append) as agent:
        agent.host.redactor.protect("s3cr3t-canary", "token")
        result = await agent.invoke("use s3cr3t-canary")
        await agent.invoke("fail")
        assert result.text == "it is [redacted:token]"
        assert seen[0] == "use [redacted:token]"
        assert "s3cr3t-canary" not in repr([agent.session.path(), events])
        assert "[redacted:token] is wrong" in reasons(agent)[-1]


@pytest.mark.parametrize("fails", [False, True])
async def test_lone_surrogates_of_a_handler_are_replaced(stage, fails):
    def handle(request, ctx):
        if fails:
            raise ValueError("a \ud800 b")
        return "a \ud800 b"

    async with stage(["hm", "hm"], routing(Route("odd", "^odd", handle))) as agent:
        await agent.invoke("odd")
        assert (await agent.invoke("hi")).text == "hm"
        assert [one for one in [*reasons(agent), *(text for _, text in texts(agent))] if "\ud800" in one] == []


async def test_abort_by_a_handler_wins_over_its_reply(stage):
    def handle(request, ctx):
        ctx.abort("enough")
        return "pong"

    async with stage(["later"], routing(Route("ping", "^ping$", handle))) as agent:
        result = await agent.invoke("ping")
        assert (result.status, result.error["message"], result.text) == ("aborted", "enough", "")
        assert texts(agent) == [("user", "ping")]
        assert (await agent.invoke("go on")).text == "later"


async def test_abort_cancels_a_handler_and_keeps_the_input(stage):
    async def handle(request, ctx):
        agent.abort("by the user")
        await anyio.sleep_forever()

    async with stage(["later"], routing(Route("ping", "^ping$", handle))) as agent:
        assert (await agent.invoke("ping")).status == "aborted"
        assert texts(agent) == [("user", "ping")]
        assert (await agent.invoke("go on")).text == "later"


# Records


def test_search_for_an_open_route_stops_at_the_last_answer():
    answer = MessageEntry(message=AssistantMessage(content="hi"), run="r1", step="0")
    path = iter([RunEntry(run="r1", status="completed"), answer, "the rest"])
    assert open_route(SimpleNamespace(newest_first=lambda: path)) is None
    assert next(path) == "the rest"


async def test_route_entries_survive_an_export_and_an_import(stage):
    async with stage([], routing(PING)) as agent:
        await agent.invoke("ping")
        lines = list(await agent.sessions.export(agent.session.id))
        info, _ = await agent.sessions.import_(lines)
        tree = await agent.sessions.read(info.id)
        assert info.id != agent.session.id
        assert [record_of(one) for one in tree.path()] == [record_of(one) for one in agent.session.path()]


async def test_metadata_of_a_message_does_not_come_from_a_provider(stage):
    def after_provider_response(event):
        return attrs.evolve(event, response={**event.response, "metadata": {"draft": True}})

    async with stage(["hello"], routing(PING, after_provider_response=after_provider_response)) as agent:
        await agent.invoke("hi")
        assert agent.session.messages()[-1].metadata is None
