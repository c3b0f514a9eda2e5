import json

import pytest
from sideband.messages import TextPart, ThinkingPart, Usage
from sideband.providers import ProviderRefused, StreamBroken, TextDelta, ThinkingDelta, ToolCallDelta

pytestmark = pytest.mark.anyio

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 20},
}


@pytest.fixture
def server(shared_server):
    return shared_server


@pytest.fixture
def client(shared_client):
    return shared_client


def calls(*parts):
    return {"tool_calls": list(parts)}


def call(arguments="", *, index=0, id_=None, name=None):
    return {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


async def test_text_is_streamed_and_joined_in_the_message(client, server, make):
    server.reply(make.events(make.chunk(content="Hel"), make.chunk(content="lo"), make.chunk(finish="stop")))
    *deltas, finished = await client.events()
    assert deltas == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert finished.message.content == (TextPart(text="Hello"),)
    assert (finished.message.stop, finished.message.usage) == ("end", Usage())


async def test_usage_is_split_into_input_cache_output_and_reasoning(client, server, make):
    end = {"choices": [], "usage": USAGE}
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop"), end))
    usage = (await client.ask()).usage
    assert usage == Usage(input=30, cache_read=60, cache_write=10, output=30, reasoning=20)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -1, "completion_tokens": "7"},
        {"prompt_tokens": 10**15 + 1},
        {"prompt_tokens": True, "prompt_tokens_details": 3},
        [],
        "x",
    ],
    ids=str,
)
async def test_invalid_usage_is_ignored(client, server, make, usage):
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop"), {"choices": [], "usage": usage}))
    assert (await client.ask()).usage == Usage()


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_comes_before_the_text(client, server, make, field):
    server.reply(make.events(make.chunk(**{field: "hm"}), make.chunk(content="x"), make.chunk(finish="stop")))
    *deltas, finished = await client.events()
    assert deltas == [ThinkingDelta(text="hm"), TextDelta(text="x")]
    assert finished.message.content == (ThinkingPart(text="hm"), TextPart(text="x"))


async def test_content_may_be_a_list_of_parts(client, server, make):
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    parts = [thinking, {"type": "text", "text": "x"}, {"type": "reference"}, 7]
    server.reply(make.events(make.chunk(content=parts), make.chunk(finish="stop")))
    assert (await client.ask()).content == (ThinkingPart(text="hm"), TextPart(text="x"))


async def test_tool_call_is_assembled_from_deltas(client, server, make):
    server.reply(
        make.events(
            make.chunk(**calls(call('{"a"', id_="c1", name="sky"))),
            make.chunk(**calls(call(":1}"))),
            make.chunk(finish="tool_calls"),
        )
    )
    *deltas, finished = await client.events()
    assert deltas == [
        ToolCallDelta(index=0, name="sky", arguments='{"a"'),
        ToolCallDelta(index=0, arguments=":1}"),
    ]
    (part,) = finished.message.tool_calls
    assert (part.id, part.name, part.arguments, part.problem) == ("c1", "sky", {"a": 1}, None)
    assert finished.message.stop == "tool_calls"


@pytest.mark.parametrize(
    "pieces",
    [
        [call('{"n":1}', index=0, id_="a", name="sky"), call('{"n":2}', index=1, id_="b", name="sky")],
        [call('{"n":1}', id_="a", name="sky"), call('{"n":2}', id_="b", name="sky")],
        [call('{"n":1}', name="sky"), call('{"n":2}', name="sky")],
        [call('{"n":1}', index=None, id_="a", name="sky"), call('{"n":2}', index=None, id_="b", name="sky")],
    ],
    ids=["numbered", "all number 0", "without ids", "without numbers"],
)
@pytest.mark.parametrize("together", [True, False])
async def test_two_calls_are_distinguished_however_the_server_numbers_them(client, server, make, pieces, together):
    chunks = [make.chunk(**calls(*pieces))] if together else [make.chunk(**calls(one)) for one in pieces]
    server.reply(make.events(*chunks, make.chunk(finish="tool_calls")))
    message = await client.ask()
    assert [one.arguments for one in message.tool_calls] == [{"n": 1}, {"n": 2}]
    assert len({one.id for one in message.tool_calls}) == 2


async def test_pieces_of_two_calls_may_alternate(client, server, make):
    pieces = [
        call("{", index=0, id_="a", name="sky"),
        call("{", index=1, id_="b", name="sea"),
        call('"n":1}', index=0),
        call('"n":2}', index=1),
    ]
    server.reply(make.events(*[make.chunk(**calls(one)) for one in pieces], make.chunk(finish="tool_calls")))
    assert [(one.name, one.arguments["n"]) for one in (await client.ask()).tool_calls] == [("sky", 1), ("sea", 2)]


async def test_id_and_name_may_be_repeated_in_each_piece(client, server, make):
    pieces = [call('{"n"', id_="a", name="sky"), call(":1}", id_="a", name="sky")]
    server.reply(make.events(*[make.chunk(**calls(one)) for one in pieces], make.chunk(finish="tool_calls")))
    (one,) = (await client.ask()).tool_calls
    assert (one.name, one.arguments) == ("sky", {"n": 1})


async def test_arguments_may_come_as_an_object(client, server, make):
    server.reply(make.events(make.chunk(**calls(call({"n": 1}, id_="a", name="sky"))), make.chunk(finish="stop")))
    message = await client.ask()
    assert (message.tool_calls[0].arguments, message.stop) == ({"n": 1}, "tool_calls")


async def test_missing_arguments_are_an_empty_object(client, server, make):
    server.reply(make.events(make.chunk(**calls(call("", id_="a", name="sky"))), make.chunk(finish="tool_calls")))
    (one,) = (await client.ask()).tool_calls
    assert (one.arguments, one.problem) == ({}, None)


@pytest.mark.parametrize(
    "arguments",
    ["{", "[1]", '"x"', "7", "null", '{"a": NaN}', '{"a": 1e999}', "x", "{" * 3000, '{"a":' * 70 + "1" + "}" * 70],
)
async def test_invalid_arguments_are_a_problem_of_the_call(client, server, make, arguments):
    server.reply(
        make.events(make.chunk(**calls(call(arguments, id_="a", name="sky"))), make.chunk(finish="tool_calls"))
    )
    (one,) = (await client.ask()).tool_calls
    assert one.arguments == {}
    assert one.problem.startswith("invalid arguments: ")


async def test_call_cut_off_at_the_length_limit_has_a_problem(client, server, make):
    server.reply(make.events(make.chunk(**calls(call("", id_="a", name="sky"))), make.chunk(finish="length")))
    message = await client.ask()
    assert message.stop == "length"
    assert "cut off" in message.tool_calls[0].problem


async def test_ids_already_used_in_the_conversation_are_replaced(client, server, make):
    called = {"role": "assistant", "content": [{"type": "tool_call", "id": "call_0", "name": "sky"}]}
    done = {"role": "tool", "call": "call_0", "tool": "sky", "content": "x"}
    server.reply(make.events(make.chunk(**calls(call("{}", id_="call_0", name="sky"))), make.chunk(finish="stop")))
    message = await client.ask(make.request(messages=[called, done]))
    assert message.tool_calls[0].id != "call_0"


async def test_call_without_a_name_is_malformed(client, server, make):
    server.reply(make.events(make.chunk(**calls(call("{}", id_="a"))), make.chunk(finish="tool_calls")))
    with pytest.raises(StreamBroken, match="tool name"):
        await client.ask()


async def test_too_many_calls_are_malformed(client, server, make):
    many = [call("{}", index=number, id_=f"c{number}", name="sky") for number in range(300)]
    server.reply(make.events(make.chunk(**calls(*many)), make.chunk(finish="tool_calls")))
    with pytest.raises(StreamBroken, match="more than 256"):
        await client.ask()


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("stop", "end"), ("length", "length"), ("content_filter", "refusal"), ("eos", "end"), ("max_tokens", "length")],
)
async def test_finish_reason_is_converted(client, server, make, reason, stop):
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish=reason)))
    assert (await client.ask()).stop == stop


async def test_refusal_is_text_with_stop_reason_refusal(client, server, make):
    server.reply(make.events(make.chunk(refusal="I will not."), make.chunk(finish="stop")))
    message = await client.ask()
    assert (message.text, message.stop) == ("I will not.", "refusal")


@pytest.mark.parametrize("reason", ["error", "abort"])
async def test_response_aborted_by_the_server_is_broken(client, server, make, reason):
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish=reason)))
    with pytest.raises(StreamBroken, match=reason):
        await client.ask()


async def test_announced_but_missing_tool_calls_are_malformed(client, server, make):
    server.reply(make.events(make.chunk(finish="tool_calls")))
    with pytest.raises(StreamBroken, match="no tool calls"):
        await client.ask()


async def test_empty_and_null_pieces_are_ignored(client, server, make):
    chunks = [
        {"choices": []},
        {"choices": None},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 0, "delta": {"content": None, "tool_calls": None}, "finish_reason": ""}]},
        {"prompt_filter_results": []},
        make.chunk(content=""),
        {"choices": [{"index": 1, "delta": {"content": "another"}}]},
    ]
    server.reply(make.events(*chunks, make.chunk(content="x"), make.chunk(finish="stop")))
    assert (await client.ask()).text == "x"


async def test_surrogates_are_joined_across_pieces(client, server, make):
    server.reply(make.events(make.chunk(content="a\ud83d"), make.chunk(content="\ude00b"), make.chunk(finish="stop")))
    *deltas, finished = await client.events()
    assert "".join(one.text for one in deltas) == finished.message.text == "a\N{GRINNING FACE}b"


async def test_unpaired_surrogate_is_replaced(client, server, make):
    server.reply(make.events(make.chunk(content="a\ud83d"), make.chunk(finish="stop")))
    assert (await client.ask()).text == "a\N{REPLACEMENT CHARACTER}"


async def test_done_may_be_missing_after_the_finish_reason(client, server, make):
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop"), done=False))
    assert (await client.ask()).text == "x"


async def test_done_may_be_missing_its_newline(client, server, make):
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")).rstrip())
    assert (await client.ask()).text == "x"


async def test_response_without_a_finish_reason_and_done_is_broken(client, server, make):
    server.reply(make.events(make.chunk(content="x"), done=False))
    with pytest.raises(StreamBroken, match="before the response was complete") as caught:
        await client.ask()
    assert caught.value.retryable


async def test_empty_stream_is_broken(client, server):
    server.reply(b"")
    with pytest.raises(StreamBroken):
        await client.ask()


@pytest.mark.parametrize("data", ["{", "7", "[]", '{"choices": 7}', "[" * 5000, '{"a": NaN}'])
async def test_invalid_event_is_malformed(client, server, make, data):
    server.reply(make.events(make.chunk(content="x"), data, make.chunk(finish="stop")))
    with pytest.raises(StreamBroken):
        await client.ask()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"message": "slow down", "code": 429}, 429),
        ({"message": "slow down", "code": "429"}, 429),
        ({"message": "slow down", "type": "rate_limit_exceeded", "code": None}, 429),
        ({"message": "slow down", "type": "invalid_request_error", "code": "context_length_exceeded"}, 400),
        ({"message": "slow down"}, None),
        ("slow down", None),
    ],
    ids=str,
)
async def test_error_in_the_stream_implies_a_status(client, server, make, error, status):
    server.reply(make.events(make.chunk(content="x"), {"error": error}), headers=[("Retry-After", "7")])
    with pytest.raises(ProviderRefused, match="slow down") as caught:
        await client.ask()
    assert caught.value.status == status
    assert caught.value.headers == {"retry-after": "7"}


async def test_error_may_be_an_event_of_type_error(client, server):
    server.reply(b'event: error\ndata: {"message": "no room", "code": 503}\n\n')
    with pytest.raises(ProviderRefused, match="no room") as caught:
        await client.ask()
    assert caught.value.status == 503


async def test_error_may_be_the_whole_body_with_status_200(client, server):
    server.reply({"error": {"message": "no room", "code": 502}}, kind="application/json")
    with pytest.raises(ProviderRefused, match="no room") as caught:
        await client.ask()
    assert caught.value.status == 502


async def test_error_may_be_in_a_choice(client, server, make):
    server.reply(make.events({"choices": [{"index": 0, "delta": {}, "error": {"message": "no room", "code": 502}}]}))
    with pytest.raises(ProviderRefused, match="no room"):
        await client.ask()


async def test_response_that_is_not_streamed_is_read(client, server):
    function = {"name": "sky", "arguments": '{"n": 1}'}
    message = {"role": "assistant", "content": "x", "tool_calls": [{"id": "a", "function": function}]}
    data = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": USAGE}
    server.reply(data, kind="application/json; charset=utf-8")
    got = await client.ask()
    assert (got.text, got.tool_calls[0].arguments, got.usage.output) == ("x", {"n": 1}, 30)


async def test_call_in_text_of_an_offered_tool_is_recognized(client, server, make):
    text = 'I look.\n```json\n{"name": "sky", "arguments": {"n": 1}}\n```'
    server.reply(make.events(make.chunk(content=text), make.chunk(finish="stop")))
    message = await client.ask(tools=["sky"])
    assert (message.text, message.stop) == ("I look.", "tool_calls")
    assert message.tool_calls[0].arguments == {"n": 1}


@pytest.mark.parametrize("fields", [{"tools": ["sea"]}, {}, {"tools": ["sky"], "tool_choice": "none"}], ids=str)
async def test_call_in_text_of_another_tool_remains_text(client, server, make, fields):
    text = json.dumps({"name": "sky", "arguments": {}})
    server.reply(make.events(make.chunk(content=text), make.chunk(finish="stop")))
    message = await client.ask(**fields)
    assert (message.text, message.tool_calls, message.stop) == (text, (), "end")


async def test_call_in_text_beside_a_real_call_remains_text(client, server, make):
    text = json.dumps({"name": "sky", "arguments": {"n": 2}})
    chunk = make.chunk(content=text, **calls(call('{"n": 1}', id_="a", name="sky")))
    server.reply(make.events(chunk, make.chunk(finish="tool_calls")))
    message = await client.ask(tools=["sky"])
    assert [one.arguments for one in message.tool_calls] == [{"n": 1}]
    assert message.text == text


async def test_call_in_truncated_text_is_ignored(client, server, make):
    text = json.dumps({"name": "sky", "arguments": {}})
    server.reply(make.events(make.chunk(content=text), make.chunk(finish="length")))
    assert (await client.ask(tools=["sky"])).tool_calls == ()
