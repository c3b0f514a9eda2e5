import pytest
from sideband.ops import OpFailed
from sideband.plugins import PluginError
from sideband.providers import ProviderUnconfigured

pytestmark = pytest.mark.anyio


@pytest.fixture
def sent_headers(server, listen, say):
    """Return a function that sends a request from a host and returns its headers."""

    async def ask(host):
        server.reply(say.start(), *say.text(0, "ok"), *say.end())
        await listen(host)
        return server.requests[-1].headers

    return ask


async def refusal(host, listen):
    with pytest.raises(ProviderUnconfigured) as caught:
        await listen(host)
    return caught.value


async def test_secret_named_after_the_provider_is_used(open_host, server, credentials, sent_headers, key):
    credentials.add("anthropic", key, server.origin)
    async with open_host(base_url=server.origin) as host:
        headers = await sent_headers(host)
        assert host.redactor.text(f"the key is {key}") == "the key is [redacted:anthropic]"
    assert headers["x-api-key"] == key


async def test_configured_secret_may_define_its_own_header(open_host, server, credentials, sent_headers):
    credentials.add("gateway", "v4lue-of-it", server.origin, Authorization="Bearer v4lue-of-it")
    async with open_host(base_url=server.origin, key="gateway") as host:
        headers = await sent_headers(host)
    assert headers["authorization"] == "Bearer v4lue-of-it"
    assert "x-api-key" not in headers


async def test_stored_key_takes_precedence_over_the_environment(
    open_host, server, credentials, *, sent_headers, key, monkeypatch
):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-the-environment")
    credentials.add("anthropic", key, server.origin)
    async with open_host() as host:
        assert (await sent_headers(host))["x-api-key"] == key


async def test_key_and_address_are_read_from_the_environment(open_host, server, sent_headers, key, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{server.origin}/v1/")
    monkeypatch.setenv("ANTHROPIC_API_KEY", f" {key}\n")
    async with open_host() as host:
        assert (await sent_headers(host))["x-api-key"] == key
        assert host.redactor.text(key) == "[redacted:ANTHROPIC_API_KEY]"
    assert server.requests[-1].path == "/v1/messages"


async def test_auth_token_from_the_environment_is_sent_as_bearer_token(
    open_host, server, sent_headers, key, monkeypatch
):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", key)
    async with open_host() as host:
        assert (await sent_headers(host))["authorization"] == f"Bearer {key}"


async def test_loopback_address_needs_no_key(open_host, server, sent_headers):
    async with open_host(base_url=server.origin) as host:
        headers = await sent_headers(host)
    assert not {"x-api-key", "authorization"} & headers.keys()


async def test_key_from_the_environment_is_not_sent_to_another_address(
    open_host, server, sent_headers, key, monkeypatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    async with open_host(base_url=server.origin) as host:
        assert key not in str(await sent_headers(host))


async def test_error_names_the_origin_of_a_key_bound_elsewhere(open_host, listen, key, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    async with open_host(base_url="https://models.example.org/v1") as host:
        error = await refusal(host, listen)
    assert "no key for https://models.example.org" in error.message
    assert "belongs to https://api.anthropic.com" in error.message
    assert "--origin https://models.example.org" in error.hint
    assert key not in str(error.as_dict())


async def test_missing_key_hint_lists_every_way_to_set_one(open_host, listen, models):
    async with open_host() as host:
        error = await refusal(host, listen)
        with pytest.raises(ProviderUnconfigured):
            await models(host)
    assert "ANTHROPIC_API_KEY" in error.hint
    assert "`sideband secrets set anthropic --origin https://api.anthropic.com`" in error.hint


async def test_configured_secret_bound_elsewhere_is_not_replaced(
    open_host, server, credentials, *, key, listen, monkeypatch
):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-the-environment")
    credentials.add("mine", key, "https://api.anthropic.com")
    async with open_host(key="mine") as host:
        error = await refusal(host, listen)
    assert "`mine`" in error.message
    assert error.hint == f"bind it to {server.origin}"
    assert not server.requests


async def test_failed_store_is_reported_if_no_other_key_exists(
    open_host, server, credentials, *, key, listen, sent_headers, monkeypatch
):
    credentials.failure = OpFailed("the keyring is locked", code="secrets.locked", hint="unlock it")
    async with open_host() as host:
        error = await refusal(host, listen)
        assert "locked" in error.message
        assert error.hint == "unlock it"
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        assert (await sent_headers(host))["x-api-key"] == key


@pytest.mark.parametrize("bad", ["two words", "line\nbreak", "grüß"])
async def test_key_not_allowed_in_a_header_is_rejected_without_showing_it(open_host, server, listen, monkeypatch, bad):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
    monkeypatch.setenv("ANTHROPIC_API_KEY", bad)
    async with open_host() as host:
        error = await refusal(host, listen)
    assert "ANTHROPIC_API_KEY" in error.message
    assert bad not in error.message


async def test_error_names_the_variable_of_an_invalid_address(open_host, listen, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "not an address")
    async with open_host() as host:
        assert "ANTHROPIC_BASE_URL" in (await refusal(host, listen)).message


@pytest.mark.parametrize(
    "config",
    [
        {"base_url": "ftp://example.org"},
        {"base_url": "https://user:pass@example.org"},
        {"base_url": "https://example.org/?q=1"},
        {"base_url": "https://exa mple.org"},
        {"base_url": "https://example.org/a b"},
        {"headers": {"Authorization": "Bearer x"}},
        {"headers": {"X-Api-Key": "x"}},
        {"headers": {"anthropic-beta": "x"}},
        {"headers": {"X-A": "a\r\nX-B: b"}},
        {"betas": ["a\r\nb"]},
        {"version": "1\r\n2"},
        {"idle_timeout": 0},
        {"api_key": "sk-ant-1"},
    ],
    ids=str,
)
async def test_invalid_configuration_is_rejected(open_host, config):
    async with open_host(**config) as host:
        with pytest.raises(PluginError):
            await host.broker.ops.provider("anthropic")
