"""Loopback servers that send exactly the given bytes, and a fake plugin context."""

import gc
import json
import ssl
import threading
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from types import SimpleNamespace

import pytest
import trustme
from sideband.broker import Redaction, check_egress
from sideband.ops import Credential, OpFailed
from sideband_model_client import (
    KeyForm,
    ModelService,
    ServiceAccess,
    ServiceAddress,
    ServiceConnections,
    ServiceRequest,
    _connections,
)

PATIENCE = 20
ACME = ModelService(
    official="https://api.acme.example/v1",
    key_form=KeyForm("authorization", "Bearer "),
    user_agent="sideband-acme/1",
    address_variable="ACME_BASE_URL",
    key_variables={"ACME_API_KEY": KeyForm("authorization", "Bearer "), "ACME_TOKEN": KeyForm("x-token")},
    without_key="use another one",
)


@pytest.fixture
def anyio_backend():
    """Run on asyncio. Tests of cancellation, closing and concurrency override it with both backends."""
    return "asyncio"


@pytest.fixture(params=["aiohttp", "httpx"])
def library(request, monkeypatch):
    """Run each test with both libraries. On trio both are httpx."""
    if request.param == "httpx":
        monkeypatch.setattr(_connections, "_has_aiohttp", lambda: False)
    return request.param


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
        headers = []
        while text := self.rfile.readline().decode().strip():
            name, _, value = text.partition(":")
            headers.append((name.lower(), value.strip()))
        body = self.rfile.read(int(dict(headers).get("content-length", 0)))
        method, path, _ = line.split(" ", 2)
        seen = SimpleNamespace(method=method, path=path, headers=dict(headers), pairs=headers, body=body)
        seen.connection = self.client_address
        self.server.seen.append(seen)
        return self.server.script(self)

    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()


class Server(ThreadingTCPServer):
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
        self.closed = threading.Event()

    @property
    def origin(self):
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    @property
    def base_url(self):
        return f"{self.origin}/v1"

    def handle_error(self, request, client_address):
        pass

    def reply(self, body, *, status=200, kind="text/event-stream", headers=()):
        """Answer each request with a complete response that has a Content-Length."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        head += [f"{name}: {value}" for name, value in headers]
        data = "\r\n".join([*head, "", ""]).encode() + body

        def script(handler):
            handler.send(data)
            return True

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

    def flood(self, head, piece):
        """Send this piece repeatedly, without end."""

        def script(handler):
            handler.send(head)
            while True:
                handler.send(piece)

        self.script = script


@contextmanager
def running(server):
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
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


@pytest.fixture
def acme():
    return ACME


def access_to(base_url, *, check=None, **fields):
    check = check or Context().check_egress
    return ServiceAccess("acme", ACME, ServiceAddress.parse(base_url), check, plugin="acme", **fields)


@pytest.fixture
def access():
    """Return a function that makes the access to an address, without a key by default."""
    return access_to


@pytest.fixture
def ask():
    """Return a function that sends a request, checks the response and returns its text."""

    async def send(base_url, *, ca_file=None, secrets=(), most=1 << 20, **fields):
        request = ServiceRequest(access_to(base_url, secrets=secrets), "/chat", {"stream": True}, **fields)
        async with ServiceConnections(ca_file) as connections, connections.exchange(request) as reply:
            await reply.check()
            return await reply.text(most)

    return send


class Context:
    """A plugin context that holds a test's secrets and records the values registered for redaction."""

    plugin = "acme"

    def __init__(self):
        self.secrets = {}
        self.failure = None
        self.resolved = []
        self.protected = {}

    def add(self, handle, value, origin, **headers):
        self.secrets[handle] = (Credential(handle=handle, value=value, headers=headers), origin)

    async def credential(self, handle, audience):
        self.resolved.append((handle, audience))
        if self.failure is not None:
            raise self.failure
        if handle not in self.secrets:
            raise OpFailed(f"there is no secret `{handle}`", code="secrets.missing")
        credential, origin = self.secrets[handle]
        if origin != audience:
            raise OpFailed(f"`{handle}` is bound to {origin}", code="secrets.audience", hint="bind it")
        return credential

    def protect(self, value, name="secret", *, origins=()):
        self.protected[name] = value

    def check_egress(self, audience, parts):
        redactor = Redaction()
        for name, value in self.protected.items():
            redactor.protect(value, name)
        check_egress(redactor, self.plugin, audience, parts)


@pytest.fixture
def ctx(monkeypatch):
    for name in (ACME.address_variable, *ACME.key_variables):
        monkeypatch.delenv(name, raising=False)
    return Context()
