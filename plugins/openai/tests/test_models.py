import socket

import pytest
from sideband.plugins import PluginError
from sideband.providers import ModelInfo, Prices, ProviderRefused, ProviderUnreachable
from sideband_openai import _local
from sideband_openai._known_models import known
from sideband_openai._model_list import listed_models

pytestmark = pytest.mark.anyio


def listed(*items, official=False):
    return listed_models({"data": list(items)}, official=official, free=False)


@pytest.fixture
def taken_port():
    """Reserve a port on which no process listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        yield one.getsockname()[1]


async def test_models_are_sorted_by_name(client, server):
    server.reply({"object": "list", "data": [{"id": "b"}, {"id": "a"}]}, kind="application/json")
    assert [one.id for one in await client.models()] == ["a", "b"]
    assert (server.requests[-1].method, server.requests[-1].path) == ("GET", "/v1/models")


async def test_configured_loopback_server_is_not_assumed_to_be_free(client, server):
    server.reply({"data": [{"id": "a", "max_model_len": 4096}]}, kind="application/json")
    assert await client.models() == (ModelInfo(id="a", context_window=4096),)


async def test_invalid_list_is_refused(client, server):
    server.reply(b"<html>", kind="text/plain")
    with pytest.raises(ProviderRefused, match="invalid JSON"):
        await client.models()


async def test_error_status_of_the_list_is_refused(client, server):
    server.reply({"error": {"message": "who are you"}}, status=401)
    with pytest.raises(ProviderRefused, match="who are you"):
        await client.models()


def test_properties_reported_by_the_server_are_used():
    (model,) = listed(
        {
            "id": "maker/model",
            "context_length": 200_000,
            "top_provider": {"max_completion_tokens": 8_000},
            "architecture": {"input_modalities": ["text", "image"]},
            "supported_parameters": ["tools", "reasoning"],
            "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"},
        }
    )
    assert model == ModelInfo(
        id="maker/model",
        context_window=200_000,
        max_output=8_000,
        images=True,
        thinking=True,
        tools=True,
        prices=Prices(input=3, output=15, cache_read=0.3),
    )


def test_properties_not_reported_are_unset():
    (model,) = listed({"id": "a"})
    assert model.model_fields_set == {"id"}


@pytest.mark.parametrize(
    "item",
    [
        {"id": 7},
        {"id": ""},
        {"id": "a b"},
        {"id": "a\x1b[31m"},
        {"id": "x" * 300},
        {},
        7,
    ],
)
def test_entry_without_a_valid_name_is_skipped(item):
    assert listed(item) == ()


@pytest.mark.parametrize(
    "field",
    [
        {"context_length": "many"},
        {"context_length": -1},
        {"context_length": True},
        {"pricing": {"prompt": "-1", "completion": "nan"}},
        {"pricing": {"prompt": None, "completion": []}},
        {"pricing": 7, "top_provider": [], "architecture": None, "supported_parameters": "tools"},
    ],
    ids=str,
)
def test_invalid_values_are_ignored(field):
    (model,) = listed({"id": "a", **field})
    assert (model.context_window, model.prices) == (None, None)


@pytest.mark.parametrize("data", [None, 7, {"data": 7}, {"data": None}, [], {}], ids=str)
def test_invalid_list_is_empty(data):
    assert listed_models(data, official=False, free=False) == ()


def test_official_models_get_properties_from_the_data_file():
    models = listed({"id": "gpt-4.1-2025-04-14"}, {"id": "gpt-9"}, {"id": "text-embedding-3-small"}, official=True)
    assert [one.id for one in models] == ["gpt-4.1-2025-04-14", "gpt-9"]
    assert models[0].context_window == 1_047_576
    assert models[0].prices.input == 2
    assert models[1].model_fields_set == {"id"}


def test_models_of_other_services_do_not_use_the_data_file():
    assert listed({"id": "gpt-4.1"})[0].prices is None


def test_data_file_is_plausible():
    for name in ("gpt-5", "gpt-5-mini", "gpt-4o", "o3", "gpt-3.5-turbo"):
        info = known(name).info
        assert info.id == name
        assert info.context_window > info.max_output > 0
        assert info.prices.output > info.prices.input > (info.prices.cache_read or 0) >= 0


async def test_local_servers_are_providers(open_client):
    async with open_client() as client:
        names = await client.host.broker.ops.providers()
    assert names == ("openai", "openai-llamacpp", "openai-lmstudio", "openai-ollama", "openai-vllm")


async def test_local_setting_disables_them(open_client):
    async with open_client(local=False) as client:
        assert await client.host.broker.ops.providers() == ("openai",)
        with pytest.raises(PluginError):
            await client.of("openai-ollama").provider()


async def test_local_server_is_found_and_gets_no_key(open_client, server, monkeypatch, make, credentials):
    monkeypatch.setitem(_local._PORTS, "ollama", server.port)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    credentials.add("openai-ollama", "sk-stored", server.origin)
    server.reply({"data": [{"id": "small"}]}, kind="application/json")
    async with open_client() as client:
        assert await client.of("openai-ollama").models() == (ModelInfo(id="small", prices=Prices(input=0, output=0)),)
        server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")))
        assert (await client.of("openai-ollama").ask()).text == "x"
    assert all("authorization" not in one.headers for one in server.requests)
    assert credentials.resolved == []


async def test_absent_local_server_has_no_models(open_client, taken_port, monkeypatch):
    monkeypatch.setitem(_local._PORTS, "vllm", taken_port)
    async with open_client() as client:
        assert await client.of("openai-vllm").models() == ()
        with pytest.raises(ProviderUnreachable) as caught:
            await client.of("openai-vllm").ask()
    assert "server is running" in caught.value.hint


@pytest.mark.parametrize(
    "reply", [(b"<html>", 200, "text/html"), (b"no", 404, "text/plain"), (b"{", 200, "text/plain")]
)
async def test_other_service_on_the_port_has_no_models(open_client, server, monkeypatch, reply):
    monkeypatch.setitem(_local._PORTS, "llamacpp", server.port)
    body, status, kind = reply
    server.reply(body, status=status, kind=kind)
    async with open_client() as client:
        assert await client.of("openai-llamacpp").models() == ()


async def test_configured_service_replaces_the_local_default(open_client, server):
    server.reply({"data": [{"id": "a"}]}, kind="application/json")
    async with open_client(services={"ollama": {"base_url": server.base_url}}) as client:
        assert (await client.host.broker.ops.providers()).count("openai-ollama") == 1
        assert [one.id for one in await client.of("openai-ollama").models()] == ["a"]


async def test_opening_a_host_sends_no_requests(open_client, server):
    async with open_client(base_url=server.base_url) as client:
        await client.host.broker.ops.providers()
    assert server.requests == []
