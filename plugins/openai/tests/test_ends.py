"""How a response may end: servers differ, and a call that is repeated is paid for again."""

import json

import pytest
from sideband.messages import Usage
from sideband.providers import ProviderError, ProviderRefused, StreamBroken

pytestmark = pytest.mark.anyio

USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
COUNTED = Usage(input=7, output=3)
FUNCTION = {"index": 0, "id": "c1", "type": "function", "function": {"name": "sky", "arguments": '{"at": 1}'}}


@pytest.fixture
def server(shared_server):
    return shared_server


@pytest.fixture
def client(shared_client):
    return shared_client


async def failure(client, kind=ProviderError, **fields):
    with pytest.raises(kind) as caught:
        await client.ask(**fields)
    return caught.value


def whole(finish, **message):
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        **({"finish_reason": finish} if finish != 0 else {}),
    }
    return {"object": "chat.completion", "choices": [choice], "usage": USAGE}


async def test_done_ends_a_response_without_finish_reason(client, server, make):
    """Snowflake Cortex never sends a finish reason."""
    first = {"choices": [{"index": 0, "delta": {"content": "4"}}]}
    second = {"choices": [{"index": 0, "delta": {"content": "2"}}], "usage": USAGE}
    server.reply(make.events(first, second))
    message = await client.ask()
    assert (message.text, message.stop, message.usage) == ("42", "end", COUNTED)


async def test_done_ends_tool_calls_without_finish_reason(client, server, make):
    server.reply(make.events({"choices": [{"index": 0, "delta": {"tool_calls": [FUNCTION]}}]}))
    message = await client.ask(tools=["sky"])
    assert (message.stop, message.tool_calls[0].arguments) == ("tool_calls", {"at": 1})


async def test_end_of_the_body_without_finish_reason_and_done_is_broken(client, server, make):
    server.reply(make.events(make.chunk(content="4"), {"choices": [], "usage": USAGE}, done=False))
    error = await failure(client, StreamBroken)
    assert error.retryable
    assert error.usage == COUNTED


@pytest.mark.parametrize("finish", [0, "", None], ids=["missing", "empty", "null"])
async def test_complete_json_body_needs_no_finish_reason(client, server, finish):
    server.reply(whole(finish, content="42"), kind="application/json")
    message = await client.ask()
    assert (message.text, message.stop, message.usage) == ("42", "end", COUNTED)


async def test_json_body_with_calls_and_without_finish_reason_has_the_calls(client, server):
    server.reply(whole("", content=None, tool_calls=[FUNCTION]), kind="application/json")
    message = await client.ask(tools=["sky"])
    assert (message.stop, message.tool_calls[0].name) == ("tool_calls", "sky")


@pytest.mark.parametrize("form", ["stream", "json"])
async def test_every_cut_of_a_response_without_finish_reason_is_an_error(client, server, make, form):
    """Here the connection ends the body, so that HTTP does not detect a cut."""
    first = {"choices": [{"index": 0, "delta": {"content": "4"}}]}
    body = make.events(first, {"choices": [{"index": 0, "delta": {"content": "2"}}]})
    if form == "json":
        body = json.dumps(whole("", content="42")).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    for place in range(len(body)):
        server.send(head + body[:place])
        await failure(client)
    server.send(head + body)
    assert (await client.ask()).text == "42"


@pytest.mark.parametrize("kind", ["text/plain", "text/event-stream", "application/octet-stream"])
async def test_json_body_is_read_whatever_its_type(client, server, kind):
    server.reply(b"\n  " + json.dumps(whole("stop", content="42")).encode(), kind=kind)
    assert (await client.ask()).text == "42"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-ndjson"])
async def test_event_stream_is_read_whatever_its_type(client, server, make, kind):
    server.reply(make.events(make.chunk(content="42"), make.chunk(finish="stop")), kind=kind)
    assert (await client.ask()).text == "42"


@pytest.mark.parametrize("kind", ["text/plain; charset=utf-8", "image/png"])
async def test_body_of_another_type_without_events_is_refused_for_good(client, server, kind):
    server.reply(b"ok, all is well", kind=kind)
    error = await failure(client, ProviderRefused)
    assert not error.retryable
    assert kind.partition(";")[0] in error.message
    assert "ok, all is well" in error.body


async def test_empty_event_stream_may_be_retried(client, server):
    server.reply(b"")
    assert (await failure(client, StreamBroken)).retryable


@pytest.mark.parametrize("api", ["json", "stream"])
async def test_response_without_choices_is_refused_for_good(client, server, make, api):
    body = {"choices": [], "usage": USAGE}
    if api == "json":
        server.reply(body, kind="application/json")
    else:
        server.reply(make.events(body))
    error = await failure(client, StreamBroken)
    assert not error.retryable
    assert "choices" in error.message
    assert error.usage == COUNTED


async def test_json_body_that_is_truncated_may_be_retried(client, server):
    server.reply(json.dumps(whole("stop", content="42")).encode()[:-5], kind="application/json")
    assert (await failure(client, StreamBroken)).retryable


async def test_usage_of_groq_is_counted(client, server, make):
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "x_groq": {"id": "r", "usage": USAGE}}
    server.reply(make.events(make.chunk(content="x"), last))
    assert (await client.ask()).usage == COUNTED


async def test_usage_within_a_choice_is_counted(client, server, make):
    """Moonshot sends the usage there."""
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]}
    server.reply(make.events(make.chunk(content="x"), last))
    assert (await client.ask()).usage == COUNTED


async def test_error_of_groq_within_a_stream_is_refused(client, server, make):
    server.reply(make.events(make.chunk(content="x"), {"choices": [], "x_groq": {"error": "over capacity"}}))
    assert "over capacity" in (await failure(client, ProviderRefused)).message


async def test_usage_before_a_reported_error_is_counted(client, server, make):
    server.reply(make.events(make.chunk(content="x", usage=USAGE), {"error": {"message": "no"}, "usage": USAGE}))
    error = await failure(client, ProviderRefused)
    assert error.usage == COUNTED
    assert error.as_dict()["usage"]["output"] == 3


async def test_usage_of_a_cut_response_is_counted(client, server, make):
    data = make.events(make.chunk(content="x", usage=USAGE), done=False)
    server.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n" + data)
    assert (await failure(client, StreamBroken)).usage == COUNTED


async def test_error_has_no_usage_unless_the_server_reports_it(client, server):
    server.reply({"error": {"message": "no"}}, status=500, kind="application/json")
    error = await failure(client, ProviderRefused)
    assert error.usage is None
    assert "usage" not in error.as_dict()
