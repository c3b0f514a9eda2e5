"""A truncated response gives an error or the complete message; never a different one, and never a hang."""

import json

import anyio
import pytest
from sideband.providers import ProviderUnreachable, StreamBroken

pytestmark = pytest.mark.anyio

SECONDS = 60
STEP = 6
TAIL = 40


def chat_stream(make):
    function = {"name": "sky", "arguments": '{"a'}
    first = {"index": 0, "id": "c1", "type": "function", "function": function}
    second = {"index": 0, "function": {"arguments": 't":"nöon"}'}}
    return make.events(
        make.chunk(content="Grüße"),
        make.chunk(tool_calls=[first]),
        make.chunk(tool_calls=[second]),
        make.chunk(finish="tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
    ).replace(b"\\u00fc", "ü".encode())


def responses_stream():
    items = [
        {"type": "message", "content": [{"type": "output_text", "text": "Grüße"}]},
        {"type": "function_call", "call_id": "c1", "name": "sky", "arguments": '{"at":"nöon"}'},
    ]
    usage = {"input_tokens": 7, "output_tokens": 3}
    events = [
        {"type": "response.output_text.delta", "delta": "Grüße"},
        {"type": "response.output_item.done", "item": items[0]},
        {"type": "response.output_item.done", "item": items[1]},
        {"type": "response.completed", "response": {"status": "completed", "output": items, "usage": usage}},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n" for one in events).encode()


def with_length(body):
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def in_chunks(body):
    pieces = [body[start : start + 100] for start in range(0, len(body), 100)]
    encoded = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"Transfer-Encoding: chunked\r\n\r\n" + encoded + b"0\r\n\r\n"


def until_the_end(body):
    return b"Connection: close\r\n\r\n" + body


@pytest.fixture(params=["chat", "responses"])
def api(request):
    return request.param


@pytest.fixture
async def receive(open_client, server, make, api):
    async with open_client(base_url=server.base_url, api=api) as client:

        async def ask(data):
            server.send(data)
            return await client.ask(tools=["sky"])

        yield ask


@pytest.mark.parametrize(
    ("framed", "first"),
    [
        pytest.param(with_length, 0, id="length"),
        pytest.param(in_chunks, 2, id="chunked"),
        pytest.param(until_the_end, 4, id="until-close"),
    ],
)
async def test_truncated_response_is_an_error_or_complete(receive, make, api, framed, first):
    """Truncate at every sixth byte, from a different start for each framing, and at each byte of the end."""
    stream = chat_stream(make) if api == "chat" else responses_stream()
    data = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + framed(stream)
    whole = await receive(data)
    assert (whole.text, whole.tool_calls[0].arguments, whole.usage.input) == ("Grüße", {"at": "nöon"}, 7)
    right = []
    with anyio.fail_after(SECONDS):
        for place in [*range(first, len(data) - TAIL, STEP), *range(len(data) - TAIL, len(data))]:
            try:
                message = await receive(data[:place])
            except (StreamBroken, ProviderUnreachable):
                continue
            right.append(place)
            assert message.content == whole.content
            assert message.stop == whole.stop
            # If the body ends with the connection, truncation after the finish reason cannot be detected.
            assert message.usage == whole.usage or framed is until_the_end
    assert all(place > len(data) * 2 / 3 for place in right)
