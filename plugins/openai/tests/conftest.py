"""Loopback servers that send exactly the given bytes, and a host with this plugin."""

import gc
import json
import ssl
import threading
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from types import SimpleNamespace

import attrs
import pytest
import sideband_openai.plugin
import sideband_store_sqlite.plugin
import trustme
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import Credential, Level, OpFailed, OpFamily, Scope, op
from sideband.providers import Finished, ModelRequest, ToolSchema

PATIENCE = 20


@pytest.fixture(scope="module")
def anyio_backend():
    """Run on asyncio. Tests of cancellation, closing and concurrency override it with both backends."""
    return "asyncio"


class Handler(StreamRequestHandler):
    """Reads requests in sequence and answers each with the server's script."""

    def handle(self):
        with suppress(OSError):
            if hasattr(self.request, "do_handshake"):
                self.request.do_handshake()
            while self.one_request():
                pass

    def one_request(self):
        line = self.rfile.readline().decode()
        if not line.strip():
            return False
        headers = {}
        while text := self.rfile.readline().decode().strip():
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        body = self.rfile.read(int(headers.get("content-length", 0)))
        method, path, _ = line.split(" ", 2)
        seen = SimpleNamespace(method=method, path=path, headers=headers, body=json.loads(body) if body else None)
        seen.connection = self.client_address
        self.server.seen.append(seen)
        return self.server.answer(self)

    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()


class Server(ThreadingTCPServer):
    """Answers each request by calling `script` with the handler."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, context=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            self.scheme = "https"
        self.seen = []
        self.script = None
        self.released = threading.Event()
        self.closed = threading.Event()

    @property
    def origin(self):
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    @property
    def base_url(self):
        return f"{self.origin}/v1"

    def answer(self, handler):
        return self.script(handler)

    def handle_error(self, request, client_address):
        pass

    def reply(self, body, *, status=200, kind="text/event-stream", headers=(), keep=True):
        """Answer each request with a complete response that has a Content-Length."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        head += [f"{name}: {value}" for name, value in headers]
        data = "\r\n".join([*head, "", ""]).encode() + body

        def script(handler):
            handler.send(data)
            return keep

        self.script = script

    def raw(self, data):
        """Send exactly these bytes, then close the connection."""

        def script(handler):
            handler.send(data)
            return False

        self.script = script

    def hold_after(self, data):
        """Send these bytes, then keep the connection open until the client closes it."""

        def script(handler):
            handler.send(data)
            handler.request.settimeout(PATIENCE)
            with suppress(OSError):
                if not handler.rfile.read(1):
                    self.closed.set()
            return False

        self.script = script


@contextmanager
def running(server):
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def collect_garbage():
    """Return `gc.collect`, made fast by excluding the objects that exist before the test."""
    gc.freeze()
    yield gc.collect
    gc.unfreeze()


@pytest.fixture
def server():
    with running(Server()) as one:
        yield one


@pytest.fixture
def other():
    with running(Server()) as one:
        yield one


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture
def ca_file(authority, tmp_path):
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


@pytest.fixture
def tls_server(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with running(Server(context)) as one:
        yield one


@attrs.frozen
class SecretsScope(Scope, family="secrets"):
    name: str | None = None
    mode: str | None = None


class Credentials:
    """A credential store that holds a test's secrets by handle, each bound to an origin."""

    def __init__(self):
        self.secrets = {}
        self.resolved = []

    def add(self, handle, value, origin, **headers):
        self.secrets[handle] = (Credential(handle=handle, value=value, headers=headers), origin)

    async def resolve(self, handle, audience, ctx):
        self.resolved.append((handle, audience))
        if handle not in self.secrets:
            raise OpFailed("there is no such secret", code="secrets.missing")
        credential, origin = self.secrets[handle]
        if origin != audience:
            raise OpFailed(f"the secret is bound to {origin}", code="secrets.audience")
        return credential


class Nothing(BaseModel):
    pass


@op("secrets.list", level=Level.SAFE)
async def count(params: Nothing, ctx) -> int:
    """Return the number of secrets."""
    return 1


@pytest.fixture
def credentials():
    return Credentials()


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def host_with(config, home, credentials):
    family = OpFamily(name="secrets", ops=(count,), scope=SecretsScope, credentials=credentials)
    return Host(
        home=home,
        settings={"plugins": {"openai": config}},
        plugins=[
            Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
            Plugin(kind="provider", name="openai", value=sideband_openai.plugin),
            Plugin(kind="op", name="secrets", value=SimpleNamespace(sideband_ops=lambda: family)),
        ],
        autoload=False,
    )


@pytest.fixture
def open_host(tmp_path, credentials):
    """Return a function that makes a host with this plugin; `config` is the table `[plugins.openai]`."""
    return lambda **config: host_with(config, tmp_path / "home", credentials)


class Client:
    """Calls providers the way the op family `llm` does."""

    def __init__(self, host):
        self.host = host

    async def provider(self, name="openai"):
        return await self.host.broker.ops.provider(name)

    async def names(self):
        return await self.host.broker.ops.providers()

    async def models(self, name="openai"):
        provider, ctx = await self.provider(name)
        return await provider.models(ctx)

    async def events(self, request=None, name="openai", **fields):
        provider, ctx = await self.provider(name)
        async with aclosing(provider.stream(request or asking(**fields), ctx)) as stream:
            return [event async for event in stream]

    async def ask(self, request=None, name="openai", **fields):
        events = await self.events(request, name, **fields)
        assert isinstance(events[-1], Finished)
        assert not any(isinstance(event, Finished) for event in events[:-1])
        return events[-1].message


def asking(text="hello", *, tools=(), **fields):
    """Return a request with one message."""
    schemas = tuple(ToolSchema(name=name) for name in tools)
    given = {"model": "m", "messages": [{"role": "user", "content": text}], "tools": schemas}
    return ModelRequest(**{**given, **fields})


def events_of(*data, done=True):
    """Return the bytes of an event stream."""
    texts = [one if isinstance(one, str) else json.dumps(one) for one in data]
    return "".join(f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])]).encode()


def chunk(finish=None, usage=None, **delta):
    """Return a Chat Completions chunk."""
    data = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return {**data, "usage": usage} if usage else data


@pytest.fixture
def make():
    return SimpleNamespace(request=asking, events=events_of, chunk=chunk)


@pytest.fixture
async def client(open_host, server):
    """Open a client of the plugin, whose service `openai` is `server`."""
    async with open_host(base_url=server.base_url) as host:
        yield Client(host)


@pytest.fixture(scope="module")
def shared_config():
    """Return the configuration of `shared_host`, except for its address; modules may override it."""
    return {}


@pytest.fixture(scope="module")
def shared_server():
    with running(Server()) as one:
        yield one


@pytest.fixture(scope="module")
async def shared_host(shared_config, shared_server, tmp_path_factory):
    """Open a host for all tests of a module that test the conversion of requests and responses only."""
    config = {**shared_config, "base_url": shared_server.base_url}
    async with host_with(config, tmp_path_factory.mktemp("shared") / "home", Credentials()) as host:
        yield host


@pytest.fixture
def shared_client(shared_host, shared_server):
    shared_server.seen.clear()
    return Client(shared_host)


@pytest.fixture
def open_client(open_host):
    """Return a function that opens a client of a host with the given configuration."""

    @asynccontextmanager
    async def open_one(**config):
        async with open_host(**config) as host:
            yield Client(host)

    return open_one
