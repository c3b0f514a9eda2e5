"""A host with this plugin, and fixtures that start the servers of `servers.py`."""

import gc
import socket
import ssl
from types import SimpleNamespace

import anyio
import attrs
import pytest
import sideband_http._exchange._retry
import sideband_http.plugin
import sideband_store_sqlite.plugin
import trustme
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.blobs import BlobScope
from sideband.ops import Credential, Level, OpError, OpFailed, OpFamily, Scope, op
from sideband_http._scope import HomeFileScope

from .servers import TOKEN, RawServer, Server, running


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
    with running(RawServer()) as one:
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
    with running(Server(server_context)) as one:
        yield one


@pytest.fixture
def http2_server(server_context):
    server_context.set_alpn_protocols(["h2", "http/1.1"])
    with running(Server(server_context)) as one:
        yield one


@attrs.frozen
class SecretsScope(Scope, family="secrets"):
    name: str | None = None
    mode: str | None = None


class Credentials:
    """A credential store with one token for any origin, in several forms."""

    def __init__(self):
        self.resolved = []

    async def resolve(self, handle, audience, ctx):
        self.resolved.append((handle, audience))
        if handle == "missing":
            raise OpFailed("there is no such secret", code="secrets.missing")
        headers = {
            "bearer": {},
            "apikey": {"X-Api-Key": TOKEN},
            "cookie": {"Cookie": f"sid={TOKEN}"},
            "broken": {"X-Api-Key": f"{TOKEN}\r\nX-Evil: 1"},
        }[handle]
        return Credential(handle=handle, value=TOKEN, headers=headers)


class Nothing(BaseModel):
    pass


@op("secrets.list", level=Level.SAFE)
async def count(params: Nothing, ctx) -> int:
    """Return the number of secrets."""
    return 1


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
    return Credentials()


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


@pytest.fixture
def open_host(tmp_path, credentials, transport, more_plugins):
    """Return a function that makes a host with this plugin; `config` is the table `[plugins.http]`."""

    def make(**config):
        config = {"transport": transport, **config}
        blobs = OpFamily(name="blobs", ops=(count_blobs,), scope=BlobScope)
        files = OpFamily(name="files", ops=(count_files,), scope=HomeFileScope)
        family = OpFamily(name="secrets", ops=(count,), scope=SecretsScope, credentials=credentials)
        return Host(
            home=tmp_path / "home",
            settings={"plugins": {"http": config}},
            plugins=[
                Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
                Plugin(kind="op", name="http", value=sideband_http.plugin),
                Plugin(kind="op", name="secrets", value=SimpleNamespace(sideband_ops=lambda: family)),
                *more_plugins,
                Plugin(kind="op", name="blobs", value=SimpleNamespace(sideband_ops=lambda: blobs)),
                Plugin(kind="op", name="files", value=SimpleNamespace(sideband_ops=lambda: files)),
                Plugin(
                    kind="op",
                    name="flow",
                    value=SimpleNamespace(sideband_ops=lambda: OpFamily(name="flow", ops=(flow,))),
                ),
            ],
            autoload=False,
        )

    return make


@pytest.fixture
async def host(open_host):
    async with open_host() as one:
        yield one
