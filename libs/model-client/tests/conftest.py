"""A loopback server, and a fake plugin context."""

import pytest
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
from sideband_testing import HttpServer

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


class Server(HttpServer):
    """Replies with event streams by default."""

    @property
    def base_url(self):
        return f"{self.origin}/v1"

    def reply(self, body, **options):
        super().reply(body, **{"kind": "text/event-stream", **options})


@pytest.fixture
def server():
    with Server() as one:
        yield one


@pytest.fixture
def other(server):
    return server.another()


@pytest.fixture
def tls_server(server):
    return server.another(tls=True)


@pytest.fixture
def ca_file(tls_server):
    return tls_server.ca_file


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
