"""A truncated response gives an error or the complete message; never a different one, and never a hang."""

import socket

import anyio
import pytest
from sideband.providers import ProviderError, ProviderUnreachable, StreamBroken

pytestmark = pytest.mark.anyio

STEP = 6
TAIL = 40


def events(say):
    thought = say.block(
        0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "c2ln"},
    )  # fmt: skip
    call = say.tool(2, "toolu_1", "a", '{"n": 1', "2}")
    return [say.start({"input_tokens": 1}), *thought, *say.text(1, "grüß", " dich"), *call, *say.end("tool_use")]


@pytest.mark.parametrize(("chunked", "first"), [(False, 0), (True, 3)])
async def test_truncated_response_is_an_error_or_complete(host, server, listen, say, *, chunked, first):
    """Truncate at every sixth byte, from a different start for each framing, and at each byte of the end."""
    server.reply(*events(say), chunked=chunked, keep=False)
    with socket.create_connection(("127.0.0.1", server.port)) as client, client.makefile("rb") as file:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        whole = file.read()
    _, right = await listen(host)
    head = whole.index(b"\r\n\r\n") + 4
    complete = []
    for cut in [*range(first, len(whole) - TAIL, STEP), *range(len(whole) - TAIL, len(whole))]:
        server.send(whole[:cut])
        answer = await outcome(listen, host)
        if isinstance(answer, ProviderError):
            assert isinstance(answer, StreamBroken if cut >= head else ProviderUnreachable), cut
            assert answer.retryable, cut
        else:
            assert answer == right, cut
            complete.append(cut)
    # Only the bytes after the last event may be missing.
    ending = len(b"\r\n0\r\n\r\n") if chunked else 0
    assert all(cut >= len(whole) - ending for cut in complete)


async def outcome(listen, host):
    """Return the message, or the error of the provider."""
    with anyio.fail_after(10):
        try:
            return (await listen(host))[1]
        except ProviderError as error:
            return error
