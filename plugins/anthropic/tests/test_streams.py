import json
from functools import partial

import anyio
import pytest
from sideband.messages import ThinkingPart, UserMessage
from sideband.providers import (
    ModelRequest,
    ProviderRefused,
    ProviderTimeout,
    StreamBroken,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from sideband_anthropic import _provider
from sideband_model_client import ServiceRequest

pytestmark = pytest.mark.anyio
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


async def test_text_is_streamed_and_joined_in_the_message(host, server, listen, say):
    server.reply(say.start({"input_tokens": 9}), *say.text(0, "It has ", "12 stars."), *say.end(output_tokens=5))
    deltas, message = await listen(host)
    assert deltas == [TextDelta(text="It has "), TextDelta(text="12 stars.")]
    assert (message.text, message.stop) == ("It has 12 stars.", "end")
    assert (message.usage.input, message.usage.output) == (9, 5)


async def test_tool_calls_are_assembled_from_deltas(host, server, listen, say):
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
    "arguments", ['{"x": ', "[1]", "NaN", '{"x": NaN}', '{"x": "\\ud83d"}', '{"x":' * 100 + "1" + "}" * 100, "9" * 9999]
)
async def test_invalid_arguments_are_a_problem_of_the_call(host, server, listen, say, arguments):
    server.reply(say.start(), *say.tool(0, "toolu_1", "a", arguments), *say.end("tool_use"))
    _, message = await listen(host)
    (call,) = message.tool_calls
    assert call.arguments == {}
    assert call.problem.startswith("invalid arguments: ")


async def test_thinking_keeps_its_signature(host, server, listen, say):
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


async def test_usage_is_read_from_first_and_last_event(host, server, listen, say):
    begin = say.start({"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 1})
    usage = {"output_tokens": 90, "output_tokens_details": {"thinking_tokens": 70}, "cache_creation_input_tokens": 8}
    server.reply(begin, *say.text(0, "x"), *say.end(**usage))
    _, message = await listen(host)
    used = message.usage
    assert (used.input, used.output, used.cache_read, used.cache_write, used.reasoning) == (3, 90, 40, 8, 70)


@pytest.mark.parametrize("count", [None, -1, "3", True, 1.5, 10**15 + 1])
async def test_invalid_token_counts_are_ignored(host, server, listen, say, count):
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
async def test_stop_reason_is_converted(host, server, listen, say, *, reason, stop):
    server.reply(say.start(), *say.text(0, "x"), *say.end(reason))
    assert (await listen(host))[1].stop == stop


async def test_unknown_events_and_blocks_are_ignored(host, server, listen, say):
    strange = say.block(
        0, {"type": "server_tool_use", "name": "web"}, {"type": "input_json_delta", "partial_json": "{"}
    )
    new = {"type": "telepathy", "index": 7}
    cited = say.block(1, {"type": "text", "text": "a"}, {"type": "citations_delta", "citation": {}})
    server.reply(say.start(), {"type": "ping"}, *strange, new, *cited, *say.end(), {"type": "afterthought"})
    _, message = await listen(host)
    assert message.text == "a"
    assert len(message.content) == 1


async def test_surrogates_are_joined_across_deltas(host, server, listen, say):
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
async def test_error_in_a_stream_has_the_status_of_its_type(host, server, listen, say, *, kind, status):
    error = {"type": "error", "error": {"type": kind, "message": "Over\x1b[2Jloaded"}}
    server.reply(say.start(), *say.text(0, "half"), error, headers=[("Retry-After", "7")])
    with pytest.raises(ProviderRefused, match=rf"{kind}: Over\N{{REPLACEMENT CHARACTER}}\[2Jloaded") as caught:
        await listen(host)
    assert caught.value.status == status
    assert caught.value.headers["retry-after"] == "7"
    assert caught.value.retryable is (status not in (401, 413))


async def test_error_as_the_first_event_is_refused(host, server, listen):
    server.reply({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    with pytest.raises(ProviderRefused) as caught:
        await listen(host)
    assert caught.value.status == 529


async def test_json_error_with_status_200_is_refused(host, server, listen):
    body = json.dumps({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}})
    server.reply(body.encode(), kind="application/json")
    with pytest.raises(ProviderRefused, match="slow down") as caught:
        await listen(host)
    assert caught.value.status == 429


async def test_web_page_is_refused(host, server, listen):
    server.reply(b"<html>login</html>", kind="text/html")
    with pytest.raises(ProviderRefused, match="web page") as caught:
        await listen(host)
    assert not caught.value.retryable
    assert "https://api.anthropic.com" in caught.value.hint


MALFORMED = {
    "no start": lambda say: [*say.text(0, "x"), *say.end()],
    "two starts": lambda say: [say.start(), say.start(), *say.end()],
    "no stop reason": lambda say: [say.start(), *say.text(0, "x"), {"type": "message_stop"}],
    "open block": lambda say: [say.start(), *say.text(0, "x")[:-1], *say.end()],
    "duplicate index": lambda say: [say.start(), *say.text(0, "x"), *say.text(0, "y"), *say.end()],
    "missing start of a block": lambda say: [say.start(), *say.text(0, "x")[1:], *say.end()],
    "delta after the end of a block": lambda say: [say.start(), *say.text(0, "x"), say.text(0, "y")[1], *say.end()],
    "no index": lambda say: [say.start(), {"type": "content_block_stop"}, *say.end()],
    "call without an id": lambda say: [say.start(), *say.tool(0, "", "a"), *say.end()],
    "call without a name": lambda say: [say.start(), *say.tool(0, "toolu_1", ""), *say.end()],
    "no end events": lambda say: [say.start(), *say.text(0, "x")],
    "no message_stop": lambda say: [say.start(), *say.text(0, "x"), say.end()[0]],
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_malformed_stream_is_broken(host, server, listen, say, case):
    server.reply(*MALFORMED[case](say))
    with pytest.raises(StreamBroken) as caught:
        await listen(host)
    assert caught.value.retryable


@pytest.mark.parametrize("body", [b"data: {\n\n", b"data: []\n\n", b"data: \xff\n\n", b"", b"no stream at all"])
async def test_invalid_event_stream_is_broken(host, server, listen, body):
    server.reply(body)
    with pytest.raises(StreamBroken):
        await listen(host)


async def test_compressed_response_is_broken(host, server, listen, say):
    server.reply(say.start(), *say.end(), headers=[("Content-Encoding", "gzip")])
    with pytest.raises(StreamBroken, match="gzip"):
        await listen(host)


async def test_endless_response_is_aborted(host, server, listen, say, monkeypatch):
    monkeypatch.setattr(_provider, "ServiceRequest", partial(ServiceRequest, largest=1 << 20))
    server.flood(HEAD + b"\r\n", b": nothing\n" * 100_000)
    with pytest.raises(StreamBroken, match="1,048,576 bytes"):
        await listen(host)


@BOTH_BACKENDS
async def test_silence_within_a_response_is_a_timeout(open_host, server, listen, say):
    server.hold(HEAD + b"\r\n" + say.sse(say.start()))
    async with open_host(base_url=server.origin, idle_timeout=0.2) as host:
        with pytest.raises(ProviderTimeout, match=r"0\.2 s"):
            await listen(host)


async def test_silence_before_a_response_is_a_timeout(open_host, server, listen):
    server.hold()
    async with open_host(base_url=server.origin, idle_timeout=0.2) as host:
        with pytest.raises(ProviderTimeout):
            await listen(host)


@BOTH_BACKENDS
async def test_cancelled_call_closes_its_connection(host, server, listen, say):
    server.hold(HEAD + b"\r\n" + say.sse(say.start(), *say.text(0, "half")))
    deltas = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: listen(host, into=deltas))
        await anyio.to_thread.run_sync(server.arrived.wait)
        with anyio.fail_after(10):
            while not deltas:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(server.closed.wait, 10)


@BOTH_BACKENDS
async def test_connection_is_reused_if_the_body_ends_shortly_after_the_last_event(host, server, listen, say):
    def answer(exchange):
        body = say.sse(say.start(), *say.text(0, "x"), *say.end())
        exchange.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(body), body))
        exchange.sleep(0.02)
        exchange.send(b"0\r\n\r\n")
        return True

    server.answer(answer)
    for _ in range(2):
        assert (await listen(host))[1].text == "x"
    first, second = server.requests
    assert first.client == second.client


@BOTH_BACKENDS
async def test_closing_the_stream_early_closes_the_connection(host, server, say):
    server.reply(say.start(), *say.text(0, "a", "b"), *say.end())
    provider, ctx = await host.broker.ops.provider("anthropic")
    stream = provider.stream(ModelRequest(model="m", messages=(UserMessage(content="x"),)), ctx)
    assert await anext(stream) == TextDelta(text="a")
    await stream.aclose()
    server.reply(say.start(), *say.text(0, "again"), *say.end())
    again = provider.stream(ModelRequest(model="m", messages=(UserMessage(content="x"),)), ctx)
    assert await anext(again) == TextDelta(text="again")
    await again.aclose()
