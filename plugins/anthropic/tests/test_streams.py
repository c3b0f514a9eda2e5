import json

import anyio
import pytest
from sideband.messages import ThinkingPart
from sideband.providers import (
    ProviderRefused,
    ProviderTimeout,
    StreamBroken,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

pytestmark = pytest.mark.anyio


async def test_text_is_streamed_and_the_message_is_the_whole(host, server, listen, say):
    server.reply(say.start({"input_tokens": 9}), *say.text(0, "It has ", "12 stars."), *say.end(output_tokens=5))
    deltas, message = await listen(host)
    assert deltas == [TextDelta(text="It has "), TextDelta(text="12 stars.")]
    assert (message.text, message.stop) == ("It has 12 stars.", "end")
    assert (message.usage.input, message.usage.output) == (9, 5)


async def test_tool_calls_are_put_together_from_their_pieces(host, server, listen, say):
    calls = [*say.tool(0, "toolu_1", "a__b", '{"x"', ": [1, 2]}"), *say.tool(1, "toolu_2", "a__c")]
    server.reply(say.start(), *calls, *say.end("tool_use"))
    deltas, message = await listen(host)
    assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == [
        ("toolu_1", "a__b", {"x": [1, 2]}),
        ("toolu_2", "a__c", {}),
    ]
    assert message.stop == "tool_calls"
    assert deltas == [
        ToolCallDelta(index=0, name="a__b"),
        ToolCallDelta(index=0, arguments='{"x"'),
        ToolCallDelta(index=0, arguments=": [1, 2]}"),
        ToolCallDelta(index=1, name="a__c"),
    ]


@pytest.mark.parametrize(
    "written", ['{"x": ', "[1]", "NaN", '{"x": NaN}', '{"x": "\\ud83d"}', '{"x":' * 100 + "1" + "}" * 100, "9" * 9999]
)
async def test_arguments_that_are_no_object_are_a_problem_of_the_call(host, server, listen, say, written):
    server.reply(say.start(), *say.tool(0, "toolu_1", "a", written), *say.end("tool_use"))
    _, message = await listen(host)
    (call,) = message.tool_calls
    assert call.arguments == {}
    assert call.problem.startswith("the arguments can't be read: ")


async def test_thoughts_keep_their_signature(host, server, listen, say):
    thought = say.block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "c2ln"},
        {"type": "signature_delta", "signature": "bmVk"},
    )
    hidden = say.block(1, {"type": "redacted_thinking", "data": "ZW5j"})
    server.reply(say.start(), *thought, *hidden, *say.text(2, "yes"), *say.end())
    deltas, message = await listen(host)
    assert message.content[:2] == (
        ThinkingPart(text="hm", signature="c2lnbmVk"),
        ThinkingPart(signature="ZW5j", redacted=True),
    )
    assert deltas[0] == ThinkingDelta(text="hm")
    assert message.text == "yes"


async def test_usage_is_taken_from_both_of_its_events(host, server, listen, say):
    begin = say.start({"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 1})
    usage = {"output_tokens": 90, "output_tokens_details": {"thinking_tokens": 70}, "cache_creation_input_tokens": 8}
    server.reply(begin, *say.text(0, "x"), *say.end(**usage))
    _, message = await listen(host)
    used = message.usage
    assert (used.input, used.output, used.cache_read, used.cache_write, used.reasoning) == (3, 90, 40, 8, 70)


@pytest.mark.parametrize("count", [None, -1, "3", True, 1.5])
async def test_counts_that_are_none_are_passed_over(host, server, listen, say, count):
    server.reply(say.start({"input_tokens": 7}), *say.text(0, "x"), *say.end(input_tokens=count))
    assert (await listen(host))[1].usage.input == 7


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "length"),
        ("refusal", "refusal"),
        ("something_new", "end"),
        ("tool_use", "end"),
    ],
)
async def test_why_it_stopped(host, server, listen, say, *, reason, stop):
    server.reply(say.start(), *say.text(0, "x"), *say.end(reason))
    assert (await listen(host))[1].stop == stop


async def test_what_is_not_known_is_passed_over(host, server, listen, say):
    strange = say.block(
        0, {"type": "server_tool_use", "name": "web"}, {"type": "input_json_delta", "partial_json": "{"}
    )
    new = {"type": "telepathy", "index": 7}
    cited = say.block(1, {"type": "text", "text": "a"}, {"type": "citations_delta", "citation": {}})
    server.reply(say.start(), {"type": "ping"}, *strange, new, *cited, *say.end(), {"type": "afterthought"})
    _, message = await listen(host)
    assert message.text == "a"
    assert len(message.content) == 1


async def test_a_character_that_is_cut_in_two_is_joined(host, server, listen, say):
    server.reply(say.start(), *say.text(0, "a\ud83d", "\ude00b", "c\ud83d"), *say.end())
    deltas, message = await listen(host)
    assert message.text == "a😀bc\N{REPLACEMENT CHARACTER}"
    assert "".join(one.text for one in deltas) == "a😀bc"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("overloaded_error", 529),
        ("rate_limit_error", 429),
        ("api_error", 500),
        ("authentication_error", 401),
        ("request_too_large", 413),
        ("something_new", None),
    ],
)
async def test_an_error_within_a_stream_has_the_status_of_its_kind(host, server, listen, say, *, kind, status):
    error = {"type": "error", "error": {"type": kind, "message": "Over\x1b[2Jloaded"}}
    server.reply(say.start(), *say.text(0, "half"), error, headers=[("Retry-After", "7")])
    with pytest.raises(ProviderRefused, match=rf"{kind}: Over\N{{REPLACEMENT CHARACTER}}\[2Jloaded") as caught:
        await listen(host)
    assert caught.value.status == status
    assert caught.value.headers["retry-after"] == "7"
    assert caught.value.retryable is (status not in (401, 413))


async def test_an_error_as_the_first_event_counts_too(host, server, listen):
    server.reply({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    with pytest.raises(ProviderRefused) as caught:
        await listen(host)
    assert caught.value.status == 529


async def test_an_error_in_a_good_answer_that_is_no_stream_is_one(host, server, listen):
    body = json.dumps({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}})
    server.reply(body.encode(), kind="application/json")
    with pytest.raises(ProviderRefused, match="slow down") as caught:
        await listen(host)
    assert caught.value.status == 429


async def test_an_answer_that_is_no_stream_is_none(host, server, listen):
    server.reply(b'{"a": 1}', kind="application/json")
    with pytest.raises(StreamBroken, match="application/json"):
        await listen(host)


async def test_a_web_page_is_no_answer(host, server, listen):
    server.reply(b"<html>login</html>", kind="text/html")
    with pytest.raises(ProviderRefused, match="web page") as caught:
        await listen(host)
    assert not caught.value.retryable
    assert "in the form of https://api.anthropic.com" in caught.value.hint


MALFORMED = {
    "no start": lambda say: [*say.text(0, "x"), *say.end()],
    "two starts": lambda say: [say.start(), say.start(), *say.end()],
    "no reason": lambda say: [say.start(), *say.text(0, "x"), {"type": "message_stop"}],
    "open block": lambda say: [say.start(), *say.text(0, "x")[:-1], *say.end()],
    "two of one index": lambda say: [say.start(), *say.text(0, "x"), *say.text(0, "y"), *say.end()],
    "lost start of a block": lambda say: [say.start(), *say.text(0, "x")[1:], *say.end()],
    "more after its end": lambda say: [say.start(), *say.text(0, "x"), say.text(0, "y")[1], *say.end()],
    "no index": lambda say: [say.start(), {"type": "content_block_stop"}, *say.end()],
    "call without an id": lambda say: [say.start(), *say.tool(0, "", "a"), *say.end()],
    "call without a name": lambda say: [say.start(), *say.tool(0, "toolu_1", ""), *say.end()],
    "no end": lambda say: [say.start(), *say.text(0, "x")],
    "no stop": lambda say: [say.start(), *say.text(0, "x"), say.end()[0]],
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_a_malformed_stream_is_no_answer(host, server, listen, say, case):
    server.reply(*MALFORMED[case](say))
    with pytest.raises(StreamBroken) as caught:
        await listen(host)
    assert caught.value.retryable


@pytest.mark.parametrize("body", [b"data: {\n\n", b"data: []\n\n", b"data: \xff\n\n", b"", b"no stream at all"])
async def test_what_is_no_stream_is_no_answer(host, server, listen, body):
    server.reply(body)
    with pytest.raises(StreamBroken):
        await listen(host)


async def test_an_answer_that_is_compressed_unasked_is_none(host, server, listen, say):
    server.reply(say.start(), *say.end(), headers=[("Content-Encoding", "gzip")])
    with pytest.raises(StreamBroken, match="gzip"):
        await listen(host)


async def test_an_answer_without_end_is_cut_off(host, server, listen, say):
    def flood(connection, server):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while not server.gone.is_set():
            connection.sendall(b": nothing\n" * 100_000)

    server.replies.append(flood)
    with pytest.raises(StreamBroken, match="67,108,864 bytes"):
        await listen(host)


async def test_silence_within_an_answer_is_given_up(open_host, server, listen, say):
    def stop(connection, server):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + say.sse(say.start()))
        server.gone.wait()

    server.replies.append(stop)
    async with open_host(base_url=server.origin, idle_timeout=0.2) as host:
        with pytest.raises(ProviderTimeout, match=r"silent for 0\.2 s"):
            await listen(host)


async def test_silence_before_an_answer_is_given_up(open_host, server, listen):
    server.replies.append(lambda connection, server: server.gone.wait())
    async with open_host(base_url=server.origin, idle_timeout=0.2) as host:
        with pytest.raises(ProviderTimeout):
            await listen(host)


async def test_a_call_that_is_cancelled_closes_its_connection(host, server, listen, say):
    heard = []

    def watch(connection, server):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        connection.sendall(head + say.sse(say.start(), *say.text(0, "half")))
        server.arrived.set()
        heard.append(connection.recv(1))

    server.replies.append(watch)
    deltas = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: listen(host, into=deltas))
        await anyio.to_thread.run_sync(server.arrived.wait)
        with anyio.fail_after(10):
            while not deltas:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(_joined, server)
    assert heard == [b""]


def _joined(server):
    for thread in server._threads:
        thread.join(10)


async def test_a_connection_is_used_again_even_if_its_end_comes_a_little_later(host, server, listen, say):
    def answer(connection, server):
        body = say.sse(say.start(), *say.text(0, "x"), *say.end())
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        with connection.makefile("rb") as file:
            connection.sendall(head + b"%x\r\n%s\r\n" % (len(body), body))
            server.gone.wait(0.02)
            connection.sendall(b"0\r\n\r\n")
            server.seen.append(server.read(file))
            connection.sendall(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))

    server.replies.append(answer)
    for _ in range(2):
        assert (await listen(host))[1].text == "x"
    assert len(server.seen) == 2


async def test_a_consumer_that_stops_half_way_closes_the_connection(host, server, say):
    from sideband.messages import UserMessage
    from sideband.providers import ModelRequest

    server.reply(say.start(), *say.text(0, "a", "b"), *say.end())
    provider, ctx = await host.broker.ops.provider("anthropic")
    stream = provider.stream(ModelRequest(model="m", messages=(UserMessage(content="x"),)), ctx)
    assert await anext(stream) == TextDelta(text="a")
    await stream.aclose()
    server.reply(say.start(), *say.text(0, "again"), *say.end())
    again = provider.stream(ModelRequest(model="m", messages=(UserMessage(content="x"),)), ctx)
    assert await anext(again) == TextDelta(text="again")
    await again.aclose()
