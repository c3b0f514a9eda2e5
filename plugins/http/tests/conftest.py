"""A host with this plugin, and its servers."""

import socket
import ssl
from types import SimpleNamespace

import anyio
import pytest
import sideband_http._exchange._retry
import sideband_http.plugin
import trustme
from pydantic import BaseModel
from sideband import Plugin
from sideband.blobs import BlobScope
from sideband.ops import Level, OpError, OpFamily, op
from sideband_http._scope import HomeFileScope
from sideband_testing import Credentials, HttpServer

from .servers import TOKEN, Server


@pytest.fixture
def anyio_backend():
    """Run on asyncio. Tests of cancellation, closing and concurrency override it with both backends."""
    return "asyncio"


@pytest.fixture
def code_of():
    """Return a function that awaits an op and returns the code of its error, or None."""

    async def run(awaitable):
        try:
            await awaitable
        except OpError as error:
            return error.code
        return None

    return run


@pytest.fixture
def server():
    with Server() as one:
        yield one


@pytest.fixture
def other(server):
    return server.another()


@pytest.fixture
def delays(monkeypatch):
    """Return the delays before retries, which are recorded instead of waited for."""
    recorded = []

    async def sleep(seconds):
        recorded.append(seconds)

    fake = SimpleNamespace(sleep=sleep, current_time=anyio.current_time)
    monkeypatch.setattr(sideband_http._exchange._retry, "anyio", fake)
    return recorded


@pytest.fixture
def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def raw_server():
    """Return a server that closes each connection without a response, until a test sets another answer."""
    with HttpServer() as one:
        one.send()
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
def server_context(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def tls_server(server_context):
    with Server(tls=server_context) as one:
        yield one


@pytest.fixture
def http2_server(server_context):
    server_context.set_alpn_protocols(["h2", "http/1.1"])
    with Server(tls=server_context) as one:
        yield one


class Nothing(BaseModel):
    pass


@op("blobs.count", level=Level.SAFE)
async def count_blobs(params: Nothing, ctx) -> int:
    """Return the number of blobs."""
    return 1


@op("files.count", level=Level.SAFE)
async def count_files(params: Nothing, ctx) -> int:
    """Return the number of files."""
    return 1


class FlowParams(BaseModel):
    steps: list[tuple[str, dict]]


@op("flow.run", level=Level.SAFE)
async def flow(params: FlowParams, ctx) -> list[dict]:
    """Run several ops in one call; `$session` is replaced with the id from the last session_open."""
    answers, session = [], ""
    for name, step in params.steps:
        filled = {key: session if value == "$session" else value for key, value in step.items()}
        try:
            answer = await ctx.dispatch(name, filled)
        except OpError as error:
            answer = {"error": error.code, "message": error.message}
        session = answer.get("session_id", session)
        answers.append(answer)
    return answers


@pytest.fixture
def credentials():
    """Return credentials with one token for any origin, in several forms."""
    found = Credentials()
    found.add("bearer", TOKEN)
    found.add("apikey", TOKEN, **{"X-Api-Key": TOKEN})
    found.add("cookie", TOKEN, Cookie=f"sid={TOKEN}")
    found.add("broken", TOKEN, **{"X-Api-Key": f"{TOKEN}\r\nX-Evil: 1"})
    return found


@pytest.fixture
def transport(request):
    """Use aiohttp on asyncio and httpx on trio, so that the backends cover both transports."""
    if "anyio_backend" in request.fixturenames and request.getfixturevalue("anyio_backend") == "asyncio":
        return "aiohttp"
    return "httpx"


@pytest.fixture
def more_plugins():
    """Return additional plugins; tests may override it."""
    return []


def family(name, *ops, **options):
    module = SimpleNamespace(sideband_ops=lambda: OpFamily(name=name, ops=ops, **options))
    return Plugin("op", name, module)


@pytest.fixture
def open_host(sideband_host, credentials, transport, more_plugins):
    """Return a function that makes a host with this plugin; `config` is the table `[plugins.http]`."""

    def make(**config):
        return sideband_host(
            Plugin("op", "http", sideband_http.plugin),
            credentials.plugin,
            *more_plugins,
            family("blobs", count_blobs, scope=BlobScope),
            family("files", count_files, scope=HomeFileScope),
            family("flow", flow),
            settings={"plugins": {"http": {"transport": transport, **config}}},
        )

    return make


@pytest.fixture
async def host(open_host):
    async with open_host() as one:
        yield one
