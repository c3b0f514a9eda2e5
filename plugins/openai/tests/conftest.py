"""A host with this plugin, whose service is a loopback server, and responses of the services."""

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import sideband_openai.plugin
from sideband import Plugin
from sideband_testing import Credentials, HostFactory, HttpServer, ProviderClient

PLUGIN = Plugin("provider", "openai", sideband_openai.plugin)


@pytest.fixture(scope="module")
def anyio_backend():
    """Run on asyncio. Tests of cancellation, closing and concurrency override it with both backends."""
    return "asyncio"


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


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def open_host(sideband_host, credentials):
    """Return a function that makes a host with this plugin; `config` is the table `[plugins.openai]`."""
    return lambda **config: sideband_host(PLUGIN, credentials.plugin, settings={"plugins": {"openai": config}})


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
    return SimpleNamespace(request=ProviderClient.request, events=events_of, chunk=chunk)


@pytest.fixture
async def client(open_host, server):
    """Open a client of the plugin, whose service `openai` is `server`."""
    async with open_host(base_url=server.base_url) as host:
        yield ProviderClient(host, "openai")


@pytest.fixture(scope="module")
def shared_config():
    """Return the configuration of `shared_host`, except for its address; modules may override it."""
    return {}


@pytest.fixture(scope="module")
def open_server():
    with Server() as one:
        yield one


@pytest.fixture(scope="module")
async def shared_host(shared_config, open_server, tmp_path_factory):
    """Open a host for all tests of a module that test the conversion of requests and responses only."""
    config = {**shared_config, "base_url": open_server.base_url}
    with pytest.MonkeyPatch.context() as patch:
        hosts = HostFactory(tmp_path_factory.mktemp("shared") / "home", patch)
        async with hosts(PLUGIN, Credentials().plugin, settings={"plugins": {"openai": config}}) as host:
            yield host


@pytest.fixture
def shared_server(open_server):
    open_server.reset()
    return open_server


@pytest.fixture
def shared_client(shared_host, shared_server):
    return ProviderClient(shared_host, "openai")


@pytest.fixture
def open_client(open_host):
    """Return a function that opens a client of a host with the given configuration."""

    @asynccontextmanager
    async def open_one(**config):
        async with open_host(**config) as host:
            yield ProviderClient(host, "openai")

    return open_one
