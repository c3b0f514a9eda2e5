import pytest
from sideband.plugins import PluginError
from sideband.providers import ProviderRefused, ProviderUnconfigured
from sideband_openai import _local

pytestmark = pytest.mark.anyio

KEY = "sk-key-of-the-test-0123456789"
ELSEWHERE = "http://models.invalid/v1"


@pytest.fixture(autouse=True)
def answering(server, make):
    server.reply(make.events(make.chunk(content="x"), make.chunk(finish="stop")))


@pytest.fixture
def variables(monkeypatch, server):
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.base_url}/")
    return monkeypatch


def sent(server):
    return server.requests[-1].headers.get("authorization")


async def unconfigured(client, name="openai"):
    with pytest.raises(ProviderUnconfigured) as caught:
        await client.of(name).ask()
    return caught.value


async def test_stored_key_is_sent_to_its_origin(client, server, credentials):
    credentials.add("openai", KEY, server.origin)
    await client.ask()
    assert sent(server) == f"Bearer {KEY}"
    assert credentials.resolved == [("openai", server.origin)]


async def test_stored_key_may_define_its_own_header(client, server, credentials):
    credentials.add("openai", KEY, server.origin, **{"X-Key": KEY})
    await client.ask()
    assert sent(server) is None
    assert server.requests[-1].headers["x-key"] == KEY


async def test_key_bound_elsewhere_is_not_sent(client, server, credentials):
    credentials.add("openai", KEY, "https://api.openai.com")
    await client.ask()
    assert sent(server) is None


async def test_error_names_the_origin_of_a_key_bound_elsewhere(open_client, credentials):
    credentials.add("openai", KEY, "https://api.openai.com")
    async with open_client(base_url=ELSEWHERE) as client:
        error = await unconfigured(client)
    assert "bound to https://api.openai.com" in error.message
    assert "sideband secrets set openai --origin http://models.invalid" in error.hint


async def test_loopback_address_needs_no_key(client, server):
    await client.ask()
    assert sent(server) is None


async def test_configured_key_must_exist(open_client, server):
    async with open_client(base_url=server.base_url, key="work") as client:
        error = await unconfigured(client)
    assert "sideband secrets set work" in error.hint
    assert server.requests == []


async def test_missing_key_hint_lists_every_way_to_set_one(open_client):
    async with open_client() as client:
        error = await unconfigured(client)
        with pytest.raises(ProviderUnconfigured):
            await client.models()
    assert error.exit_code == 5
    assert "no key for https://api.openai.com" in error.message
    for way in ("sideband secrets set openai --origin https://api.openai.com", "OPENAI_API_KEY", "openai-ollama"):
        assert way in error.hint


async def test_address_and_key_are_read_from_variables(open_client, server, variables):
    async with open_client() as client:
        await client.ask()
        assert KEY not in client.host.redactor.text(f"the key is {KEY}.")
    assert sent(server) == f"Bearer {KEY}"


async def test_stored_key_takes_precedence_over_the_variable(open_client, server, variables, credentials):
    credentials.add("openai", "sk-stored", server.origin)
    async with open_client() as client:
        await client.ask()
    assert sent(server) == "Bearer sk-stored"


async def test_configured_address_takes_precedence_over_the_variable(open_client, server, variables):
    variables.setenv("OPENAI_BASE_URL", ELSEWHERE)
    async with open_client(base_url=server.base_url) as client:
        await client.ask()
    assert len(server.requests) == 1


@pytest.mark.parametrize("address", [ELSEWHERE, None])
async def test_key_from_the_variable_is_not_sent_to_another_address(open_client, server, variables, address):
    if address is None:
        variables.delenv("OPENAI_BASE_URL")
    else:
        variables.setenv("OPENAI_BASE_URL", address)
    async with open_client(base_url=server.base_url) as client:
        await client.ask()
    assert sent(server) is None


async def test_configured_key_is_not_replaced_by_the_variable(open_client, server, variables):
    async with open_client(key="work") as client:
        await unconfigured(client)
    assert server.requests == []


async def test_key_from_the_variable_is_not_sent_to_another_service(open_client, server, variables):
    services = {"mine": {"base_url": server.base_url}}
    async with open_client(services=services) as client:
        await client.of("openai-mine").ask()
    assert sent(server) is None


async def test_error_names_the_variable_of_an_invalid_address(open_client, variables):
    variables.setenv("OPENAI_BASE_URL", "api.example.org")
    async with open_client() as client:
        assert "OPENAI_BASE_URL" in (await unconfigured(client)).message


async def test_key_not_allowed_in_a_header_is_rejected_without_showing_it(open_client, server, variables):
    variables.setenv("OPENAI_API_KEY", "sk-\u00fc-x")
    async with open_client() as client:
        error = await unconfigured(client)
    assert "sk-" not in error.message
    assert server.requests == []


async def test_service_has_its_own_key(open_client, server, credentials):
    credentials.add("openai-mine", KEY, server.origin)
    async with open_client(services={"mine": {"base_url": server.base_url}}) as client:
        await client.of("openai-mine").ask()
    assert sent(server) == f"Bearer {KEY}"


async def test_echoed_key_is_removed_from_an_error_status(client, server, credentials):
    credentials.add("openai", KEY, server.origin)
    server.reply({"error": {"message": f"Incorrect API key provided: {KEY}."}}, status=401)
    with pytest.raises(ProviderRefused) as caught:
        await client.ask()
    assert KEY not in str(caught.value.as_dict())
    assert "sideband secrets set openai" in caught.value.hint


async def test_echoed_key_is_removed_from_an_error_in_the_stream(client, server, credentials, make):
    credentials.add("openai", KEY, server.origin)
    server.reply(make.events({"error": {"message": f"bad key {KEY}", "nested": [KEY]}}))
    with pytest.raises(ProviderRefused) as caught:
        await client.ask()
    assert KEY not in str(caught.value.as_dict())


async def test_azure_key_is_sent_in_the_api_key_header(open_client, server, credentials):
    credentials.add("openai", KEY, server.origin)
    async with open_client(base_url=server.origin, api_version="2024-10-21") as client:
        await client.ask(model="my model")
        assert await client.models() == ()
    (seen,) = server.requests
    assert seen.path == "/openai/deployments/my%20model/chat/completions?api-version=2024-10-21"
    assert seen.headers["api-key"] == KEY
    assert "authorization" not in seen.headers


async def test_azure_address_may_contain_the_deployment(open_client, server):
    address = f"{server.origin}/openai/deployments/d"
    async with open_client(base_url=address, api_version="2024-10-21") as client:
        await client.ask()
    assert server.requests[-1].path == "/openai/deployments/d/chat/completions?api-version=2024-10-21"


async def test_configured_headers_are_sent(open_client, server):
    async with open_client(base_url=server.base_url, headers={"X-Title": "tests"}) as client:
        await client.ask()
    assert server.requests[-1].headers["x-title"] == "tests"


@pytest.mark.parametrize(
    "config",
    [
        {"headers": {"Authorization": "Bearer x"}},
        {"headers": {"X-Title": "a\r\nX-Evil: 1"}},
        {"headers": {"X Title": "a"}},
        {"headers": {"Host": "a"}},
        {"base_url": "ftp://example.org"},
        {"base_url": "https://user:pw@example.org/v1"},
        {"base_url": "https://example.org\\@evil.example/v1"},
        {"base_url": "https://example.org/v1?x=1"},
        {"base_url": "https://example.org:99999999/v1"},
        {"services": {"mine": {}}},
        {"services": {"Mine": {"base_url": ELSEWHERE}}},
        {"services": {"mine": {"base_url": ELSEWHERE, "services": {}}}},
        {"idle_timeout": 0},
    ],
    ids=str,
)
async def test_invalid_configuration_is_rejected(open_client, config):
    async with open_client(**config) as client:
        with pytest.raises(PluginError):
            await client.provider()


async def test_configured_address_is_normalized(open_client, server, credentials):
    credentials.add("openai", KEY, server.origin)
    address = server.base_url.replace("http", "HTTP") + "/"
    async with open_client(base_url=address) as client:
        await client.ask()
    assert (sent(server), server.requests[-1].path) == (f"Bearer {KEY}", "/v1/chat/completions")


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_error_for_a_request_without_a_key_explains_how_to_set_one(open_client, server, api):
    server.reply({"error": {"message": "Invalid API key"}}, status=401, kind="application/json")
    async with open_client(base_url=server.base_url, api=api) as client:
        with pytest.raises(ProviderRefused) as caught:
            await client.ask()
    assert "HTTP 401 (Unauthorized) because no key was sent: Invalid API key" in caught.value.message
    assert "set OPENAI_API_KEY" in caught.value.hint
    assert f"sideband secrets set openai --origin {server.origin}" in caught.value.hint


async def test_rejected_key_is_not_reported_as_missing(client, server, credentials):
    credentials.add("openai", KEY, server.origin)
    server.reply({"error": {"message": "Invalid API key"}}, status=401, kind="application/json")
    with pytest.raises(ProviderRefused) as caught:
        await client.ask()
    assert "no key was sent" not in caught.value.message
    assert "check the key" in caught.value.hint


async def test_local_server_that_requires_a_key_says_how_to_configure_it(open_client, server, monkeypatch):
    monkeypatch.setitem(_local._PORTS, "vllm", server.port)
    server.reply({"error": "Unauthorized"}, status=401, kind="application/json")
    async with open_client() as client:
        with pytest.raises(ProviderRefused) as caught:
            await client.of("openai-vllm").ask()
    assert "no key was sent" in caught.value.message
    assert "[plugins.openai.services.vllm]" in caught.value.hint
    assert f"sideband secrets set openai-vllm --origin {server.origin}" in caught.value.hint
