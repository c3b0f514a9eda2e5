"""Tests against third-party servers, which were not written for this client."""

import json
import os
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest
from sideband.messages import ToolResultMessage, UserMessage
from sideband.providers import ProviderError, ProviderRefused, StreamBroken, ToolSchema

pytestmark = pytest.mark.anyio

BIN = Path(sys.executable).parent
WEATHER = ToolSchema(
    name="weather",
    description="The weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
FAKE_RULES = """
version: 1
rules:
  - name: calls
    when:
      messages_contain: "weather"
    respond:
      tool_calls:
        - name: weather
          arguments:
            city: Oslo
  - name: rest
    when: {}
    respond:
      content: "It rains in Oslo."
"""


@contextmanager
def running(words, port, folder, **environment):
    """Run a server process until the block ends, and yield its origin once it accepts connections."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(BIN / words[0]), *words[1:]], cwd=folder, stdout=log, stderr=log, env={**os.environ, **environment}
        )
    try:
        wait(process, port, folder)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def wait(process, port, folder):
    for _ in range(300):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            break
    raise AssertionError((folder / "log").read_text())


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def llmock(tmp_path_factory):
    port = free_port()
    with running(["llmock", "serve", "--port", str(port)], port, tmp_path_factory.mktemp("llmock")) as origin:
        yield origin


@pytest.fixture(scope="module")
def fakellm(tmp_path_factory):
    port, folder = free_port(), tmp_path_factory.mktemp("fakellm")
    (folder / "fakellm.yaml").write_text(FAKE_RULES)
    with running(["fakellm", "serve", "--port", str(port)], port, folder, FAKELLM_CONFIG="fakellm.yaml") as origin:
        yield origin


@pytest.fixture
async def mocked(open_host, llmock):
    async with open_host(base_url=f"{llmock}/anthropic", idle_timeout=2) as one:
        yield one


@pytest.fixture
def script(llmock):
    """Return a function that sets the behavior of llmock for the next requests."""

    def post(*behaviors):
        post_json(f"{llmock}/_llmock/reset", {})
        post_json(f"{llmock}/_llmock/scenario", {"behaviors": behaviors})

    yield post
    post_json(f"{llmock}/_llmock/reset", {})


def post_json(url, data):
    request = urllib.request.Request(url, json.dumps(data).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        answer.read()


async def test_text_is_streamed_from_llmock(mocked, listen, script):
    script({"type": "reply", "text": "Hello from elsewhere."})
    deltas, message = await listen(mocked)
    assert message.text == "Hello from elsewhere."
    assert "".join(one.text for one in deltas) == message.text
    assert message.usage.output > 0


async def test_tool_call_round_trip_with_llmock(mocked, listen, script):
    script({"type": "reply", "tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]})
    ask = UserMessage(content="How is the weather in Oslo?")
    _, response = await listen(mocked, ask, tools=(WEATHER,))
    (call,) = response.tool_calls
    assert (call.name, call.arguments, response.stop) == ("weather", {"city": "Oslo"}, "tool_calls")
    answer = ToolResultMessage(call=call.id, tool="weather", content="rain")
    _, message = await listen(mocked, ask, response, answer, tools=(WEATHER,))
    assert message.stop == "end"
    assert message.text


async def test_malformed_arguments_from_llmock_are_a_problem_of_the_call(mocked, listen, script):
    script({"type": "tool_fault", "kind": "malformed_arguments"})
    _, message = await listen(mocked, UserMessage(content="weather?"), tools=(WEATHER,))
    assert message.tool_calls[0].problem


@pytest.mark.parametrize("kind", ["truncate", "disconnect", "malformed"])
@pytest.mark.parametrize("after", [0, 1, 2, 4])
async def test_stream_fault_of_llmock_is_retryable(mocked, listen, script, kind, after):
    script(
        {"type": "reply", "text": "one two three four five"},
        {"type": "stream_fault", "kind": kind, "after_chunks": after},
    )
    with pytest.raises(ProviderError) as caught:
        await listen(mocked)
    assert caught.value.retryable
    if after:
        assert isinstance(caught.value, StreamBroken)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 529])
async def test_error_status_of_llmock_is_refused(mocked, listen, script, status):
    script(
        {"type": "fail", "status": status, "retry_after": 3} if status == 429 else {"type": "fail", "status": status}
    )
    with pytest.raises(ProviderRefused) as caught:
        await listen(mocked)
    assert caught.value.status == status
    assert caught.value.retryable is (status in (429, 500, 529))
    assert status != 429 or caught.value.headers["retry-after"] == "3"


async def test_models_of_llmock_are_listed(mocked, models):
    listed = await models(mocked)
    assert listed["claude-haiku-4-5-20251001"].context_window == 200_000


async def test_tool_call_and_text_from_fakellm(open_host, fakellm, listen):
    async with open_host(base_url=fakellm) as host:
        ask = UserMessage(content="How is the weather?")
        _, response = await listen(host, ask, tools=(WEATHER,))
        assert response.tool_calls[0].arguments == {"city": "Oslo"}
        _, message = await listen(host, UserMessage(content="And now?"))
    assert message.text == "It rains in Oslo."


async def test_known_models_are_listed_for_fakellm_which_has_no_list(open_host, fakellm, models):
    async with open_host(base_url=fakellm) as host:
        assert "claude-haiku-4-5" in await models(host)


async def test_concurrent_streams_are_independent(open_host, fakellm, listen):
    texts = []

    async def ask(host):
        texts.append((await listen(host, UserMessage(content="hello")))[1].text)

    async with open_host(base_url=fakellm) as host, anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(ask, host)
    assert texts == ["It rains in Oslo."] * 8
