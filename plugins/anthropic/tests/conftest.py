"""A loopback server with scripted replies, and a host with this plugin."""

import json
import socket
import ssl
import threading
from contextlib import aclosing, contextmanager, suppress
from types import SimpleNamespace

import attrs
import pytest
import sideband_anthropic.plugin
import sideband_store_sqlite.plugin
import trustme
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.messages import UserMessage
from sideband.ops import Credential, Level, OpFailed, OpFamily, Scope, op
from sideband.providers import Finished, ModelRequest

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


def framed(body, status="200 OK", kind="text/event-stream", headers=(), *, chunked=False):
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", *(f"{name}: {value}" for name, value in headers)]
    if chunked:
        lines.append("Transfer-Encoding: chunked")
        body = b"".join(b"%x\r\n%s\r\n" % (len(body[i : i + 100]), body[i : i + 100]) for i in range(0, len(body), 100))
        body += b"0\r\n\r\n"
    lines.append("Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Server:
    """Answers each request with the next of ``replies``: bytes, or a function called with the socket."""

    def __init__(self, context=None):
        self.replies = []
        self.seen = []
        self.arrived = threading.Event()
        self.gone = threading.Event()
        self.scheme = "http" if context is None else "https"
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._threads = []

    @property
    def origin(self):
        return f"{self.scheme}://127.0.0.1:{self._socket.getsockname()[1]}"

    def reply(self, *events, status="200 OK", kind="text/event-stream", headers=(), chunked=False):
        body = sse(*events) if events and isinstance(events[0], dict) else b"".join(events)
        self.replies.append(framed(body, status, kind, headers, chunked=chunked))

    def refuse(self, status, error="", headers=()):
        body = json.dumps({"type": "error", "error": error}) if isinstance(error, dict) else error
        self.replies.append(framed(body.encode(), f"{status} No", "application/json", headers))

    def serve(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve_one, args=(connection,))
            thread.start()
            self._threads.append(thread)

    def close(self):
        self.gone.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _serve_one(self, connection):
        connection.settimeout(PATIENCE)
        with suppress(OSError, ssl.SSLError):
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as file:
                self.seen.append(read_request(file))
                reply = self.replies.pop(0)
                if callable(reply):
                    reply(connection, self)
                else:
                    connection.sendall(reply)

    def read(self, file):
        return read_request(file)

    @property
    def bodies(self):
        return [one["body"] for one in self.seen]


def read_request(file):
    method, path, _ = file.readline().decode().split()
    headers = {}
    while line := file.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    content = file.read(int(headers.get("content-length", 0)))
    return {"method": method, "path": path, "headers": headers, "body": json.loads(content) if content else None}


@contextmanager
def serving(server):
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(PATIENCE)


@pytest.fixture
def server():
    with serving(Server()) as one:
        yield one


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture
def tls_server(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with serving(Server(context)) as one:
        yield one


@attrs.frozen
class SecretsScope(Scope, family="secrets"):
    name: str | None = None
    mode: str | None = None


class Nothing(BaseModel):
    pass


@op("secrets.list", level=Level.SAFE)
async def count(params: Nothing, ctx) -> int:
    """Return the number of secrets."""
    return 1


class Store:
    """Stores keys, each for one origin."""

    def __init__(self):
        self.keys = {}
        self.headers = {}
        self.failure = None

    async def resolve(self, handle, audience, ctx):
        if self.failure is not None:
            raise self.failure
        if handle not in self.keys:
            raise OpFailed(f"there is no secret `{handle}`", code="secrets.missing")
        value, origin = self.keys[handle]
        if origin != audience:
            raise OpFailed(f"`{handle}` is bound to {origin}", code="secrets.audience", hint="bind it")
        return Credential(handle=handle, value=value, headers=self.headers)


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def key():
    return KEY


def host_with(config, home, store):
    family = OpFamily(name="secrets", ops=(count,), scope=SecretsScope, credentials=store)
    return Host(
        home=home,
        settings={"plugins": {"anthropic": config}},
        plugins=[
            Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
            Plugin(kind="provider", name="anthropic", value=sideband_anthropic.plugin),
            Plugin(kind="op", name="secrets", value=SimpleNamespace(sideband_ops=lambda: family)),
        ],
        autoload=False,
    )


@pytest.fixture
def open_host(tmp_path, store):
    """Return a function that makes a host with this plugin; `config` is the table `[plugins.anthropic]`."""
    return lambda **config: host_with(config, tmp_path / "home", store)


@pytest.fixture
async def host(open_host, server):
    """Open a host whose provider uses the server of this test."""
    async with open_host(base_url=server.origin, idle_timeout=PATIENCE) as one:
        yield one


@pytest.fixture(scope="module")
def shared_server():
    with serving(Server()) as one:
        yield one


@pytest.fixture(scope="module")
async def shared_host(shared_server, tmp_path_factory):
    """Open a host for all tests of a module that test the conversion of requests only."""
    config = {"base_url": shared_server.origin, "idle_timeout": PATIENCE}
    async with host_with(config, tmp_path_factory.mktemp("shared") / "home", Store()) as host:
        yield host


@pytest.fixture
def listen():
    """Return a function that streams a response from a host's provider and returns the deltas and the message."""

    async def ask(host, *messages, model="claude-haiku-4-5", into=None, **fields):
        provider, ctx = await host.broker.ops.provider("anthropic")
        request = ModelRequest(model=model, messages=messages or (UserMessage(content="hello"),), **fields)
        deltas = [] if into is None else into
        async with aclosing(provider.stream(request, ctx)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return deltas, event.message
                deltas.append(event)
        raise AssertionError("the stream ended without `Finished`")

    return ask


@pytest.fixture
def models():
    """Return a function that lists the models of a host's provider by name."""

    async def ask(host):
        provider, ctx = await host.broker.ops.provider("anthropic")
        return {info.id: info for info in await provider.models(ctx)}

    return ask
