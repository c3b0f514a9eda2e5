"""Plugins check the last message of a run before it is stored: they change its text, or request one more round."""

from types import SimpleNamespace

import anyio
import pytest
from sideband import Plugin
from sideband.hooks import Again, Retry, hookimpl
from sideband.messages import TextPart, ThinkingPart, Usage
from sideband.providers import ANSWER_LIMITS, ProviderRefused
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


def checking(check, name="checker", **others):
    """Build a plugin with this implementation of `answer`, and with implementations of other hooks."""
    functions = {"answer": check, **others}
    for hook, function in functions.items():
        function.__name__ = hook
    return Plugin("hook", name, SimpleNamespace(**{hook: hookimpl(one) for hook, one in functions.items()}))


def texts(agent):
    return [(one.role, one.text) for one in agent.session.messages()]


def shown(events):
    """Return the text of the updates, and the hooks of messages in their order."""
    text = "".join(one.delta.get("text", "") for one in events if one.hook == "message_update")
    hooks = [one.hook for one in events if one.hook.startswith("message")]
    return text, [one for i, one in enumerate(hooks) if (one, hooks[i - 1]) != ("message_update", "message_update")]


def once(instruction):
    """Request a further round for the first message."""

    def answer(event):
        return Again(instruction) if not any(one["role"] == "assistant" for one in event.messages) else None

    return answer


MESSAGE = ["message_start", "message_update", "message_end"]
STORED = ["message_start", "message_end"]


async def test_text_is_changed_before_it_is_stored_and_shown(stage):
    events = []
    plugin = checking(lambda event: event.text.replace("hue", "tint"))
    async with stage(["the hue is red"], plugin, on_event=events.append) as agent:
        result = await agent.invoke("hi")
        assert result.text == "the tint is red"
        assert agent.session.messages()[-1].metadata == {"changed_by": ["checker"]}
    assert shown(events) == ("the tint is red", [*STORED, *MESSAGE])


async def test_unchanged_text_is_shown_in_its_pieces_after_the_check(stage):
    order = []
    plugin = checking(lambda event: order.append("checked"))

    def listen(event):
        if event.hook == "message_update":
            order.append(event.delta["text"])

    async with stage(["one two three four"], plugin, on_event=listen) as agent:
        await agent.invoke("hi")
        assert agent.session.messages()[-1].metadata is None
    assert order[0] == "checked"
    assert "".join(order[1:]) == "one two three four"


async def test_text_is_shown_at_once_without_an_implementation(stage):
    order = []

    async with stage(["hello"], on_event=lambda event: order.append(event.hook)) as agent:
        await agent.invoke("hi")
    assert order.index("message_update") < order.index("effect")


async def test_implementations_see_the_changes_of_earlier_ones(stage):
    plugins = [checking(lambda event: event.text + "a", name="a"), checking(lambda event: event.text + "b", name="b")]
    async with stage(["x"], *plugins) as agent:
        assert (await agent.invoke("hi")).text == "xab"
        assert agent.session.messages()[-1].metadata == {"changed_by": ["a", "b"]}


async def test_event_has_the_messages_of_the_run_and_its_source(stage):
    seen = []

    def answer(event):
        seen.append(event)

    plugin = checking(answer)
    async with stage(["first", "second"], plugin) as agent:
        await agent.invoke("one")
        result = await agent.invoke("two", source="api")
    event = seen[1]
    assert (event.run, event.text, event.source, event.rounds) == (result.run, "second", "api", 2)
    assert [one["content"][0]["text"] for one in event.messages] == ["two"]


async def test_message_with_tool_calls_is_not_the_last_one_and_is_shown_at_once(stage, kit):
    seen, order = [], []
    plugin = checking(lambda event: seen.append(event.text))
    turns = [Turn("let me look", tool_calls=[("echo", {"text": "x"})]), "done"]

    def listen(event):
        order.append(event.hook)

    async with stage(turns, kit.echo, plugin, on_event=listen) as agent:
        await agent.invoke("hi")
    assert seen == ["done"]
    assert order.index("message_update") < order.index("tool_execution_start")


async def test_message_before_a_queued_one_is_not_the_last_one(stage):
    seen, events = [], []

    def answer(event):
        seen.append(event.text)

    def after_provider_response(event, ctx):
        if len(agent.session.messages()) == 1:
            ctx.steer("and then?")

    plugin = checking(answer, after_provider_response=after_provider_response)
    async with stage(["first", "second"], plugin, on_event=events.append) as agent:
        await agent.invoke("hi")
    assert seen == ["second"]
    assert shown(events)[0] == "firstsecond"


async def test_further_round_stores_a_draft_and_the_instruction_and_shows_only_the_last_text(stage):
    events = []
    async with stage(["draft", "better"], checking(once("Name a source.")), on_event=events.append) as agent:
        result = await agent.invoke("hi")
        assert result.text == "better"
        assert texts(agent) == [
            *[("user", "hi"), ("assistant", "draft")],
            *[("user", "Name a source."), ("assistant", "better")],
        ]
        _, draft, instruction, last = agent.session.messages()
        assert (draft.metadata, last.metadata) == ({"draft": True}, None)
        assert instruction.source == "checker"
        assert [one.text for one in agent.scripted.requests[1].messages] == ["hi", "draft", "Name a source."]
        assert agent.scripted.requests[1].messages[1].metadata is None
        steps = [one.step for one in agent.session.path() if one.type == "message"]
        assert steps == ["", "0", "1", "1"]
    assert shown(events) == ("better", [*STORED, *STORED, *STORED, *MESSAGE])


async def test_instructions_of_several_plugins_make_one_round(stage):
    plugins = [checking(once("Name a source."), name="a"), checking(once("Be brief."), name="b")]
    async with stage(["draft", "better"], *plugins) as agent:
        await agent.invoke("hi")
        assert [(one.text, one.source) for one in agent.session.messages()[2:4]] == [
            ("Name a source.", "a"),
            ("Be brief.", "b"),
        ]
        assert len(agent.scripted.requests) == 2


@pytest.mark.parametrize("rounds", [0, 1, 3])
async def test_number_of_further_rounds_is_bounded(stage, caplog, rounds):
    left = []

    def answer(event):
        left.append(event.rounds)
        return Again("Once more.")

    settings = {"agent": {"model": "scripted:test", "rounds": rounds}}
    async with stage([str(number) for number in range(9)], checking(answer), settings=settings) as agent:
        result = await agent.invoke("hi")
        assert (result.status, result.text) == ("completed", str(rounds))
        assert agent.session.messages()[-1].metadata is None
    assert left == [*range(rounds, -1, -1)]
    assert "ignored the request of `checker` for another round" in caplog.text


async def test_further_round_beyond_the_limit_of_turns_is_not_begun(stage):
    settings = {"agent": {"model": "scripted:test", "turns": 2}}
    async with stage(["a", "b", "c"], checking(lambda event: Again("More.")), settings=settings) as agent:
        result = await agent.invoke("hi")
    assert (result.status, result.text) == ("completed", "b")


async def test_further_round_beyond_the_budget_is_not_begun(stage):
    turns = [Turn("a", usage=Usage(input=100, output=10)), "b"]
    settings = {"agent": {"model": "scripted:test", "budget": {"tokens": 100}}}
    async with stage(turns, checking(lambda event: Again("More.")), settings=settings) as agent:
        result = await agent.invoke("hi")
    assert (result.status, result.text) == ("completed", "a")


async def test_thinking_is_kept_beside_a_changed_text(stage):
    async with stage([Turn("hello", thinking="hm")], checking(lambda event: "bye")) as agent:
        await agent.invoke("hi")
        (thinking, text) = agent.session.messages()[-1].content
    assert (type(thinking), type(text), text.text) == (ThinkingPart, TextPart, "bye")


async def test_thinking_is_shown_before_a_changed_text(stage):
    events = []
    plugin = checking(lambda event: "bye")
    async with stage([Turn("hello", thinking="hm")], plugin, on_event=events.append) as agent:
        await agent.invoke("hi")
    deltas = [(one.delta["type"], one.delta["text"]) for one in events if one.hook == "message_update"]
    assert deltas == [("thinking", "hm"), ("text", "bye")]


async def test_text_that_a_plugin_returns_unchanged_has_no_mark(stage):
    async with stage(["hello"], checking(lambda event: event.text)) as agent:
        await agent.invoke("hi")
        assert agent.session.messages()[-1].metadata is None


# Failures


def crash(event):
    raise ValueError("out of paper")


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        pytest.param(crash, "out of paper", id="raises"),
        pytest.param(lambda event: 7, "it returned int, but may return str, Again", id="number"),
        pytest.param(lambda event: " \n", "must not be empty", id="empty text"),
        pytest.param(lambda event: Again(" "), "`instruction` must not be empty", id="empty instruction"),
        pytest.param(lambda event: "x" * (ANSWER_LIMITS.characters + 1), "exceeds the limit of", id="huge"),
    ],
)
async def test_failing_plugin_is_skipped_and_reported(stage, caplog, check, problem):
    events = []
    async with stage(["hello"], checking(check), on_event=events.append) as agent:
        result = await agent.invoke("hi")
        assert (result.status, result.text) == ("completed", "hello")
        assert agent.session.messages()[-1].metadata is None
    assert shown(events)[0] == "hello"
    assert problem in caplog.text
    assert "checker" in caplog.text


@pytest.mark.parametrize("answer", ["a \ud800 b", Again("a \ud800 b")])
async def test_lone_surrogates_in_texts_and_instructions_are_replaced(stage, answer):
    async with stage(
        ["draft", "better", "on"], checking(lambda event: answer if event.text == "draft" else None)
    ) as agent:
        await agent.invoke("hi")
        assert (await agent.invoke("go on")).status == "completed"
        assert "a \ufffd b" in [text for _, text in texts(agent)]


async def test_instruction_that_no_model_takes_is_ignored_and_others_are_used(stage, caplog):
    plugins = [checking(once("x" * 100_001), name="a"), checking(once("Be brief."), name="b")]
    async with stage(["draft", "better"], *plugins) as agent:
        assert (await agent.invoke("hi")).text == "better"
        assert [text for role, text in texts(agent) if role == "user"] == ["hi", "Be brief."]
    assert "ignored the instruction of `a` for another round: it exceeds the limit of 100,000 characters" in caplog.text


async def test_secrets_in_texts_and_instructions_of_plugins_are_redacted(stage):
    def answer(event):
        if event.text == "draft":
            return Again("Do not use s3cr3t-canary.")
        return "It was s3cr3t-canary."

    events = []
    async with stage(["draft", "better"], checking(answer), on_event=events.append) as agent:
        agent.host.redactor.protect("s3cr3t-canary", "token")
        assert (await agent.invoke("hi")).text == "It was [redacted:token]."
        assert agent.scripted.requests[1].messages[-1].text == "Do not use [redacted:token]."
    assert "s3cr3t-canary" not in repr(events)


async def test_abort_during_the_check_stores_and_shows_nothing_unchecked_and_charges_it(stage, kit):
    async def answer(event):
        agent.abort("by the user")
        await anyio.sleep_forever()

    events = []
    turns = [Turn("unchecked", usage=Usage(input=100, output=10)), "later"]
    async with stage(turns, checking(answer), on_event=events.append) as agent:
        result = await agent.invoke("hi")
        assert result.status == "aborted"
        assert texts(agent) == [("user", "hi")]
        assert agent.usage.input == 100
        usage = [one.data["input"] for one in agent.session.path() if one.type == "custom" and one.kind == "usage"]
        assert usage == [100]
        kit.assert_valid(agent.session.messages())
    assert shown(events)[0] == ""


async def test_text_of_a_failed_attempt_is_not_shown(stage):
    def retry(event):
        return Retry(0)

    events = []
    turns = [ProviderRefused("scripted", "overloaded", status=529), "hello"]
    plugin = checking(lambda event: None, model_error=retry)
    async with stage(turns, plugin, on_event=events.append) as agent:
        await agent.invoke("hi")
    assert shown(events)[0] == "hello"


async def test_last_message_of_a_child_is_checked_with_its_source(stage):
    seen = []
    async with stage(["ok", "of the child"], checking(lambda event: seen.append((event.source, event.text)))) as agent:
        await agent.invoke("hi")
        await agent.spawn_child("task")
    assert seen == [("interactive", "ok"), ("agent", "of the child")]


def test_rounds_are_bounded_and_answers_paid_once_also_if_the_host_is_killed_in_a_check(shop):
    shop.arm("check 1")
    assert shop.run(rounds=True, calls=0) is None
    answer = shop.run(rounds=True, calls=0)
    assert answer["said"] == "finished"
    assert shop.lines("checked") == ["2", "1", "1", "0"]
    assert len(shop.lines("asked model")) == 3
