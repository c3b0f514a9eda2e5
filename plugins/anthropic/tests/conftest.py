"""A host with this plugin, whose service is a loopback server, and the events of the service."""

import json
from types import SimpleNamespace

import pytest
import sideband_anthropic.plugin
from sideband import Plugin
from sideband_testing import Credentials, HostFactory, HttpServer, ProviderClient

PLUGIN = Plugin("provider", "anthropic", sideband_anthropic.plugin)
KEY = "sk-ant-t3st-k3y-value"
PATIENCE = 20


@pytest.fixture(scope="module")
def anyio_backend():
    """Run on asyncio. Tests of cancellation, closing and concurrency override it with both backends."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def sse(*events):
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


def start(usage=None):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage or {}}
    return {"type": "message_start", "message": message}


def block(index, begin, *deltas):
    return [
        {"type": "content_block_start", "index": index, "content_block": begin},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index, *pieces):
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def tool(index, call, name, *pieces):
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block(index, {"type": "tool_use", "id": call, "name": name, "input": {}}, *deltas)


def end(stop="end_turn", **usage):
    delta = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    return [delta, {"type": "message_stop"}]


@pytest.fixture
def say():
    """Return functions that build events as the service streams them."""
    return SimpleNamespace(sse=sse, start=start, block=block, text=text, tool=tool, end=end)


class Server(HttpServer):
    """Answers each request with the next reply, by default an event stream."""

    def reply(self, *events, kind="text/event-stream", **options):
        body = sse(*events) if events and isinstance(events[0], dict) else b"".join(events)
        super().reply(body, **{"kind": kind, "then": True, **options})

    def refuse(self, status, error=""):
        body = json.dumps({"type": "error", "error": error}) if isinstance(error, dict) else error
        self.reply(body.encode(), status=status, kind="application/json")

    @property
    def bodies(self):
        return [one.json() for one in self.requests]


@pytest.fixture
def server():
    with Server() as one:
        yield one


@pytest.fixture
def tls_server(server):
    return server.another(tls=True)


@pytest.fixture
def key():
    return KEY


@pytest.fixture
def open_host(sideband_host, credentials):
    """Return a function that makes a host with this plugin; `config` is the table `[plugins.anthropic]`."""
    return lambda **config: sideband_host(PLUGIN, credentials.plugin, settings={"plugins": {"anthropic": config}})


@pytest.fixture
async def host(open_host, server):
    """Open a host whose provider uses the server of this test."""
    async with open_host(base_url=server.origin, idle_timeout=PATIENCE) as one:
        yield one


@pytest.fixture(scope="module")
def open_server():
    with Server() as one:
        yield one


@pytest.fixture(scope="module")
async def shared_host(open_server, tmp_path_factory):
    """Open a host for all tests of a module that test the conversion of requests only."""
    config = {"base_url": open_server.origin, "idle_timeout": PATIENCE}
    with pytest.MonkeyPatch.context() as patch:
        hosts = HostFactory(tmp_path_factory.mktemp("shared") / "home", patch)
        async with hosts(PLUGIN, Credentials().plugin, settings={"plugins": {"anthropic": config}}) as host:
            yield host


@pytest.fixture
def shared_server(open_server):
    open_server.reset()
    return open_server


@pytest.fixture
def listen():
    """Return a function that streams a response from a host's provider and returns the deltas and the message."""

    async def ask(host, *messages, model="claude-haiku-4-5", into=None, **fields):
        events = [] if into is None else into
        message = await ProviderClient(host, "anthropic").ask(*messages, model=model, into=events, **fields)
        return events[:-1], message

    return ask


@pytest.fixture
def models():
    """Return a function that lists the models of a host's provider by name."""

    async def ask(host):
        return {info.id: info for info in await ProviderClient(host, "anthropic").models()}

    return ask
