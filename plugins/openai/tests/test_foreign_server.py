"""Tests against `llmock`, a third-party server that injects faults."""

import json
import subprocess
import sys
import threading
from urllib.request import Request, urlopen

import pytest
from sideband.providers import ProviderRefused, ProviderTimeout, StreamBroken, TextDelta

pytestmark = pytest.mark.anyio

LISTENING = "Uvicorn running on "


@pytest.fixture(scope="module")
def llmock():
    code = "import sys; from llmock.cli import app; sys.argv[0] = 'llmock'; app()"
    command = [sys.executable, "-c", code, "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            line = next(line for line in process.stdout if LISTENING in line)
            threading.Thread(target=process.stdout.read).start()  # the server blocks once the pipe is full
            yield line.partition(LISTENING)[2].split()[0]
        finally:
            process.terminate()


@pytest.fixture
def behave(llmock):
    """Return a function that sets the behavior of the server for the next requests."""

    def post(path, data):
        body = json.dumps(data).encode()
        request = Request(f"{llmock}/_llmock/{path}", data=body, headers={"Content-Type": "application/json"})
        with urlopen(request, timeout=10) as answer:
            return json.load(answer)

    post("reset", {})
    return lambda *behaviors: post("scenario", {"behaviors": list(behaviors)})


@pytest.fixture(params=["chat", "responses"])
async def client(open_client, llmock, request):
    async with open_client(base_url=f"{llmock}/v1", api=request.param, idle_timeout=10) as one:
        yield one


async def test_text_is_streamed(client, behave):
    behave({"type": "reply", "text": "The sky is blue today."})
    *deltas, finished = await client.events(model="gpt-4o")
    assert len(deltas) > 1
    assert {type(one) for one in deltas} == {TextDelta}
    assert "".join(one.text for one in deltas) == finished.message.text == "The sky is blue today."
    assert finished.message.usage.output > 0


async def test_tool_call_round_trip(client, behave, make):
    behave({"type": "reply", "tool_calls": [{"name": "sky", "arguments": {"city": "Paris"}}]})
    request = make.request(model="gpt-4o", tools=["sky"])
    message = await client.ask(request)
    (call,) = message.tool_calls
    assert (call.name, call.arguments, message.stop) == ("sky", {"city": "Paris"}, "tool_calls")
    result = {"role": "tool", "call": call.id, "tool": "sky", "content": "blue"}
    messages = [*request.messages, message, result]
    answer = await client.ask(make.request(model="gpt-4o", tools=["sky"], messages=messages))
    assert (answer.stop, answer.tool_calls) == ("end", ())


async def test_models_are_listed(client):
    assert "gpt-4o" in {one.id for one in await client.models()}


@pytest.mark.parametrize("kind", ["truncate", "disconnect", "malformed"])
@pytest.mark.parametrize("after", [1, 2, 4])
async def test_stream_fault_is_broken(client, behave, kind, after):
    behave(
        {"type": "reply", "text": "The sky is blue, and so is the sea below it, as far as the eye can see."},
        {"type": "stream_fault", "kind": kind, "after_chunks": after},
    )
    with pytest.raises(StreamBroken):
        await client.ask(model="gpt-4o")
    assert (await client.ask(model="gpt-4o")).text


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_stalled_stream_is_a_timeout(open_client, llmock, behave, api):
    behave({"type": "stream_fault", "kind": "stall", "after_chunks": 2, "stall_seconds": 30})
    async with open_client(base_url=f"{llmock}/v1", api=api, idle_timeout=0.3) as client:
        with pytest.raises(ProviderTimeout):
            await client.ask(model="gpt-4o")


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503])
async def test_error_status_is_refused(client, behave, status):
    behave({"type": "fail", "status": status, "retry_after": 0.5, "times": 1})
    with pytest.raises(ProviderRefused) as caught:
        await client.ask(model="gpt-4o")
    assert caught.value.status == status
    assert (await client.ask(model="gpt-4o")).stop == "end"


async def test_malformed_arguments_are_a_problem_of_the_call(client, behave):
    behave(
        {"type": "reply", "tool_calls": [{"name": "sky", "arguments": {"city": "Paris"}}]},
        {"type": "tool_fault", "kind": "malformed_arguments"},
    )
    message = await client.ask(model="gpt-4o", tools=["sky"])
    assert message.tool_calls[0].problem
