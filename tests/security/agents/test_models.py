"""Hostile models and servers: the run ends, the conversation remains valid, and other agents are not affected."""

import json
from contextlib import aclosing

import anyio
import pytest
from sideband import Plugin
from sideband.messages import AssistantMessage, TextPart, ThinkingPart, ToolCallPart, Usage
from sideband.providers import ANSWER_LIMITS, Finished, TextDelta
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio

LARGEST_SESSION = 4 << 20


def call(*named):
    return Turn(tool_calls=list(named))


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"x": value}
    return value


class Raw(Scripted):
    """A provider that streams the given events unchanged."""

    def __init__(self, stream):
        super().__init__([])
        self._stream = stream

    async def stream(self, request, ctx):
        self.requests.append(request)
        async with aclosing(self._stream()) as events:
            async for event in events:
                yield event


def size_of(agent):
    return sum(len(json.dumps(entry.model_dump(mode="json"))) for entry in agent.session.path())


async def test_number_of_tool_calls_in_an_answer_is_limited(stage, kit, results):
    turn = call(*[("echo", {"text": str(number)}) for number in range(10_000)])
    async with stage([turn, "ok"], kit.echo) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
        answered = results(agent)
        assert len(answered) == ANSWER_LIMITS.calls + 1
        assert [one.is_error for one in answered] == [False] * ANSWER_LIMITS.calls + [True]
        assert "9,871 more" in answered[-1].text
        assert size_of(agent) < LARGEST_SESSION
    assert result.status == "completed"


@pytest.mark.parametrize(
    "arguments",
    [{"text": "x" * (2 << 20)}, {"text": nested(40)}, {"text": [0] * 50_000}],
    ids=["too long", "too deep", "too many values"],
)
async def test_oversized_arguments_are_neither_run_nor_stored(stage, kit, results, arguments):
    ran = []

    @tool("greedy")
    async def greedy(params: kit.Text, ctx) -> str:
        """Accept any arguments."""
        ran.append(1)
        return ""

    async with stage([call(("greedy", arguments)), "ok"], Plugin("tool", "greedy", greedy)) as agent:
        result = await agent.invoke("hi")
        (answered,) = results(agent)
        assert "was not run" in answered.text
        assert size_of(agent) < 10_000
    assert (result.status, ran) == ("completed", [])


async def test_answer_with_huge_arguments_fails_the_run(stage, kit):
    async with stage([call(("echo", {"text": "x" * (16 << 20)})), "ok"], kit.echo) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
        assert size_of(agent) < 10_000
    assert (result.status, result.error["code"]) == ("failed", "provider.stream")


async def test_arguments_of_one_answer_are_limited_together(stage, kit):
    turn = call(*[("echo", {"text": "x" * 100_000}) for _ in range(100)])
    async with stage([turn, "ok"], kit.echo) as agent:
        await agent.invoke("hi")
        request = agent.scripted.requests[1].messages
        kit.assert_valid(request)
    answered = [one for one in request if one.role == "tool"]
    assert [one.is_error for one in answered].count(False) == 5
    assert len(str(request[1])) < 1 << 20


async def test_answer_with_deeply_nested_arguments_fails_the_run(stage, kit):
    def deep():
        part = ToolCallPart.model_construct(type="tool_call", id="1", name="echo", arguments=nested(10_000))
        return AssistantMessage.model_construct(
            role="assistant", content=(part,), stop="tool_calls", model="", usage=Usage(), error=None
        )

    async def stream():
        yield Finished.model_construct(type="finished", message=deep())

    async with stage([], kit.echo, scripted=Raw(stream)) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
    assert (result.status, result.error["code"]) == ("failed", "provider.stream")


@pytest.mark.parametrize(
    "ids",
    [
        ["same", "same", "same"],
        [" ", "\t", "\u200b"],
        ["a" * (1 << 20), "b" * (1 << 20)],
        ["\x1b[2J", "a\nb", "\u202e"],
    ],
    ids=["equal", "blank", "1 MiB", "control characters"],
)
async def test_call_ids_are_replaced_by_portable_ones(stage, kit, results, ids):
    turns = [call(*[("echo", {"text": str(at)}, one) for at, one in enumerate(ids)]), "ok"]
    async with stage(turns, kit.echo) as agent:
        await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
        answered = results(agent)
    assert [one.text for one in answered] == [str(at) for at in range(len(ids))]
    assert all(0 < len(one.call) <= 200 and one.call.isascii() and one.call.isprintable() for one in answered)
    assert all(" " not in one.call for one in answered)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "\u202eohce",
        "__proto__",
        "ech",
        "echo\n",
        "echo ",
        "ECHO",
        "",
        "echo;echo",
        "x" * (1 << 20),
        "tool.call",
    ],
)
async def test_similar_name_does_not_run_the_tool(stage, kit, results, name):
    async with stage([call((name, {"text": "ran"})), "ok"], kit.echo) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
        (answered,) = results(agent)
        sent = agent.scripted.requests[1].messages[1].tool_calls[0].name
    assert result.status == "completed"
    assert answered.is_error
    assert len(answered.text) < 1_000
    assert 0 < len(sent) <= 64
    assert set(sent) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


async def test_name_that_is_valid_only_after_cleaning_does_not_run_the_tool(stage, kit, results):
    @tool("a_b")
    async def joined(params: kit.Text, ctx) -> str:
        """Must not run."""
        return "ran"

    async with stage([call(("a/b", {})), "ok"], Plugin("tool", "a_b", joined)) as agent:
        await agent.invoke("hi")
        (answered,) = results(agent)
    assert answered.is_error
    assert "ran" not in answered.text


async def test_tool_that_was_not_offered_is_not_run(stage, kit, results):
    async with stage([call(("echo", {"text": "ran"})), "ok"], kit.echo, tools=[]) as agent:
        await agent.invoke("hi")
        (answered,) = results(agent)
        assert not agent.scripted.requests[0].tools
    assert answered.is_error


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
async def test_call_with_numbers_outside_json_fails_alone(stage, kit, results, number):
    async with stage([call(("echo", {"text": number})), "ok"], kit.echo) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
        (answered,) = results(agent)
    assert result.status == "completed"
    assert answered.is_error


async def test_lone_surrogates_do_not_damage_the_session(stage, kit):
    async with stage(["\ud800 \udfff", "ok"], kit.echo) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
        again = await agent.invoke("go on")
    assert result.status in ("failed", "completed")
    assert again.status == "completed"


async def test_endless_stream_fails_the_run(stage, kit):
    async def stream():
        for _ in range(10_000_000):
            yield TextDelta(text="blah " * 200_000)
            await anyio.lowlevel.checkpoint()

    async with stage([], kit.echo, scripted=Raw(stream)) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
    assert (result.status, result.error["code"]) == ("failed", "provider.stream")
    assert f"{ANSWER_LIMITS.characters:,}" in result.error["message"]


async def test_endless_stream_of_empty_deltas_fails_the_run(stage, kit):
    async def stream():
        while True:
            yield TextDelta(text="")
            await anyio.lowlevel.checkpoint()

    async with stage([], kit.echo, scripted=Raw(stream)) as agent:
        result = await agent.invoke("hi")
    assert (result.status, result.error["code"]) == ("failed", "provider.stream")


async def test_answer_with_too_many_parts_fails_the_run(stage, kit):
    async def stream():
        yield Finished(message=AssistantMessage(content=tuple(TextPart(text="x") for _ in range(20_000))))

    async with stage([], kit.echo, scripted=Raw(stream)) as agent:
        result = await agent.invoke("hi")
    assert (result.status, result.error["code"]) == ("failed", "provider.stream")


async def test_answer_with_only_thinking_is_retried_a_limited_number_of_times(stage, kit, retry):
    turns = [Turn(thinking="hm")]
    settings = {"plugins": {"retry": {"base": 0.001, "cap": 0.002}}}
    async with stage([], kit.echo, retry, scripted=Scripted(turns, repeat=True), settings=settings) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
        assert len(agent.scripted.requests) < 20
    assert result.status == "failed"


async def test_thinking_counts_against_the_answer_limit(stage, kit):
    async def stream():
        part = ThinkingPart(text="x" * ANSWER_LIMITS.characters)
        yield Finished(message=AssistantMessage(content=(part, TextPart(text="done"))))

    async with stage([], kit.echo, scripted=Raw(stream)) as agent:
        result = await agent.invoke("hi")
    assert (result.status, result.error["code"]) == ("failed", "provider.stream")


async def test_loop_guard_aborts_repeated_failures(stage, kit, loop_guard):
    scripted = Scripted([call(("echo", {"text": ["no"]}))], repeat=True)
    async with stage([], kit.echo, loop_guard, scripted=scripted) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
        assert len(scripted.requests) < 50
    assert (result.status, "same_tool_failure_halt" in result.error["message"]) == ("aborted", True)


async def test_turn_limit_parks_an_endless_run(stage, kit):
    scripted = Scripted([call(("echo", {"text": "again"}))], repeat=True)
    settings = {"agent": {"model": "scripted:test", "turns": 7}}
    async with stage([], kit.echo, scripted=scripted, settings=settings) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
    assert (result.status, result.error["code"], len(scripted.requests)) == ("parked", "agent.turns", 7)


async def test_huge_usage_does_not_damage_the_session(stage, kit):
    turns = [Turn("a", usage=Usage(input=10**15, output=10**15, cost=1e9)), "b", "c"]
    async with stage(turns, kit.echo) as agent:
        await agent.invoke("hi")
        name, host = agent.session.id, agent.host
        await agent.new_session()
        async with Agent(host, session=name) as other:
            assert (await other.invoke("go on")).status == "completed"


async def test_agent_is_not_affected_by_another_without_an_answer(stage, kit):
    from sideband_scripted import Hang

    hang = Hang()
    async with stage([hang, "hello", "again"], kit.echo) as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(agent.invoke, "hi")
        await hang.reached.wait()
        async with Agent(agent.host) as other:
            assert (await other.invoke("hi")).text == "hello"
            assert (await other.invoke("hi")).text == "again"
        agent.abort()
