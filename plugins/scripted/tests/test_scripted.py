import anyio
import pytest
from sideband.messages import AssistantMessage, ToolCallPart, Usage, UserMessage
from sideband.providers import ProviderRefused, StreamBroken, ToolSchema
from sideband_scripted import Broken, Hang, Scripted, ScriptEnded, Turn

pytestmark = pytest.mark.anyio

HELLO = UserMessage(content="hello")
ANSWER = AssistantMessage(content="hi")


def joined(deltas, kind):
    return "".join(one.text for one in deltas if one.type == kind)


async def test_text_is_streamed_in_several_deltas(open_host, listen):
    async with open_host(Scripted(["It has twelve stars."])) as host:
        deltas, message = await listen(host)
    assert len(deltas) > 1
    assert joined(deltas, "text") == message.text == "It has twelve stars."
    assert message.stop == "end"


async def test_turns_are_played_in_order_and_requests_are_stored(open_host, listen):
    scripted = Scripted(["one", "two"])
    async with open_host(scripted) as host:
        texts = [(await listen(host, UserMessage(content=text)))[1].text for text in ("first", "second")]
    assert texts == ["one", "two"]
    assert [request.messages[0].text for request in scripted.requests] == ["first", "second"]


async def test_parts_are_ordered_thinking_text_tool_calls(open_host, listen):
    turn = Turn(text="I'll look.", thinking="hm", tool_calls=[("a__b", {"x": 1}), ("a__c", {})])
    async with open_host(Scripted([turn])) as host:
        deltas, message = await listen(host)
    assert [part.type for part in message.content] == ["thinking", "text", "tool_call", "tool_call"]
    assert message.stop == "tool_calls"
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("a__b", {"x": 1}), ("a__c", {})]
    assert "".join(one.arguments for one in deltas if one.type == "tool_call" and one.index == 0) == '{"x": 1}'
    assert [one.name for one in deltas if one.type == "tool_call" and one.name] == ["a__b", "a__c"]


async def test_call_ids_are_unique_in_the_conversation(open_host, listen):
    turn = Turn(tool_calls=[("a", {}), ("a", {})])
    async with open_host(Scripted([turn, turn])) as host:
        _, first = await listen(host, HELLO)
        _, second = await listen(host, HELLO, ANSWER, HELLO)
    ids = [call.id for message in (first, second) for call in message.tool_calls]
    assert len(set(ids)) == 4


async def test_same_history_gets_the_same_call_ids(open_host, listen):
    async with open_host(Scripted([Turn(tool_calls=[("a", {})])], repeat=True)) as host:
        messages = [(await listen(host, HELLO))[1] for _ in range(2)]
    assert messages[0] == messages[1]


async def test_call_may_have_its_own_id_or_a_problem(open_host, listen):
    calls = [("a", {}, "mine"), ToolCallPart(id="bad", name="b", problem="no JSON")]
    async with open_host(Scripted([Turn(tool_calls=calls)])) as host:
        _, message = await listen(host)
    assert [(call.id, call.problem) for call in message.tool_calls] == [("mine", None), ("bad", "no JSON")]


async def test_exception_is_raised_before_the_next_turn(open_host, listen):
    refused = ProviderRefused("scripted", "slow down", status=429, headers={"Retry-After": "1"})
    async with open_host(Scripted([refused, "at last"])) as host:
        with pytest.raises(ProviderRefused) as caught:
            await listen(host)
        assert caught.value.headers == {"retry-after": "1"}
        assert (await listen(host))[1].text == "at last"


async def test_broken_stream_breaks_off_after_its_deltas(open_host, listen):
    received = []
    async with open_host(Scripted([Broken(after=2)])) as host:
        with pytest.raises(StreamBroken):
            await listen(host, into=received)
    assert len(received) == 2


async def test_broken_stream_with_few_deltas_breaks_off(open_host, listen):
    async with open_host(Scripted([Broken(after=50, turn="x")])) as host:
        with pytest.raises(StreamBroken):
            await listen(host)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_hanging_model_sets_its_event_and_can_be_cancelled(open_host, listen):
    hang, received = Hang(after=1), []
    async with open_host(Scripted([hang])) as host, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: listen(host, into=received))
        with anyio.fail_after(10):
            await hang.reached.wait()
        tasks.cancel_scope.cancel()
    assert len(received) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_function_receives_the_request(open_host, listen, asynchronous):
    def answer(request):
        return f"you said {request.messages[-1].text}"

    async def answer_later(request):
        await anyio.lowlevel.checkpoint()
        return answer(request)

    async with open_host(Scripted([answer_later if asynchronous else answer])) as host:
        assert (await listen(host))[1].text == "you said hello"


async def test_end_of_the_script_is_not_retryable(open_host, listen):
    async with open_host(Scripted(["only one"])) as host:
        await listen(host)
        with pytest.raises(ScriptEnded, match=r"no turn 2 .*hello") as caught:
            await listen(host)
    assert not caught.value.retryable
    assert "repeat" in caught.value.hint


async def test_repeated_script_starts_again(open_host, listen):
    async with open_host(Scripted(["one", "two"], repeat=True)) as host:
        assert [(await listen(host))[1].text for _ in range(3)] == ["one", "two", "one"]


async def test_by_history_chooses_the_turn_by_the_number_of_answers(open_host, listen):
    async with open_host(Scripted(["one", "two"], by_history=True)) as host:
        assert (await listen(host, HELLO, ANSWER, HELLO))[1].text == "two"
        assert (await listen(host, HELLO))[1].text == "one"


async def test_estimated_usage_grows_with_the_request(open_host, listen):
    async with open_host(Scripted(["x" * 40], repeat=True)) as host:
        _, short = await listen(host, UserMessage(content="x" * 400))
        _, long = await listen(host, UserMessage(content="x" * 400), system="y" * 400, tools=(ToolSchema(name="t"),))
    assert (short.usage.input, short.usage.output) == (100, 10)
    assert long.usage.input > 200


async def test_usage_can_be_specified(open_host, listen):
    usage = Usage(input=5, cache_read=7, output=3)
    async with open_host(Scripted([Turn(text="x", usage=usage)])) as host:
        assert (await listen(host))[1].usage == usage


async def test_provider_lists_one_model_with_its_window(open_host):
    async with open_host(Scripted([], model="small", context_window=4_000)) as host:
        provider, ctx = await host.broker.ops.provider("scripted")
        (info,) = await provider.models(ctx)
    assert (info.id, info.context_window) == ("small", 4_000)
