import pytest
from sideband.ops import OpFailed
from sideband.plugins import PluginError
from sideband.providers import ProviderUnconfigured

pytestmark = pytest.mark.anyio


@pytest.fixture
def asked(server, listen, say):
    """The headers of a request that a host with this configuration sends."""

    async def ask(host):
        server.reply(say.start(), *say.text(0, "ok"), *say.end())
        await listen(host)
        return server.seen[-1]["headers"]

    return ask


async def refusal(host, listen):
    with pytest.raises(ProviderUnconfigured) as caught:
        await listen(host)
    return caught.value


async def test_the_secret_called_like_the_provider_is_used(open_host, server, store, asked, key):
    store.keys["anthropic"] = (key, server.origin)
    async with open_host(base_url=server.origin) as host:
        headers = await asked(host)
        assert host.redactor.text(f"the key is {key}") == "the key is [redacted:anthropic]"
    assert headers["x-api-key"] == key


async def test_the_configured_secret_is_used_in_its_own_form(open_host, server, store, asked):
    store.keys["gateway"] = ("v4lue-of-it", server.origin)
    store.headers = {"Authorization": "Bearer v4lue-of-it"}
    async with open_host(base_url=server.origin, key="gateway") as host:
        headers = await asked(host)
    assert headers["authorization"] == "Bearer v4lue-of-it"
    assert "x-api-key" not in headers


async def test_a_stored_key_comes_before_the_environment(open_host, server, store, *, asked, key, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-the-environment")
    store.keys["anthropic"] = (key, server.origin)
    async with open_host() as host:
        assert (await asked(host))["x-api-key"] == key


async def test_key_and_address_of_the_environment_are_used(open_host, server, asked, key, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{server.origin}/v1/")
    monkeypatch.setenv("ANTHROPIC_API_KEY", f" {key}\n")
    async with open_host() as host:
        assert (await asked(host))["x-api-key"] == key
        assert host.redactor.text(key) == "[redacted:ANTHROPIC_API_KEY]"
    assert server.seen[-1]["path"] == "/v1/messages"


async def test_a_token_of_the_environment_is_a_bearer_token(open_host, server, asked, key, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", key)
    async with open_host() as host:
        assert (await asked(host))["authorization"] == f"Bearer {key}"


async def test_an_address_on_this_machine_needs_no_key(open_host, server, asked):
    async with open_host(base_url=server.origin) as host:
        headers = await asked(host)
    assert not {"x-api-key", "authorization"} & headers.keys()


async def test_a_key_of_the_environment_goes_to_no_other_address(open_host, server, asked, key, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    async with open_host(base_url=server.origin) as host:
        assert key not in str(await asked(host))


async def test_a_key_that_belongs_elsewhere_is_none_and_the_error_says_so(open_host, listen, key, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    async with open_host(base_url="https://models.example.org/v1") as host:
        error = await refusal(host, listen)
    assert "no key for https://models.example.org" in error.message
    assert "belongs to https://api.anthropic.com" in error.message
    assert "--origin https://models.example.org" in error.hint
    assert key not in str(error.as_dict())


async def test_without_any_key_the_error_says_where_one_can_be_put(open_host, listen, models):
    async with open_host() as host:
        error = await refusal(host, listen)
        with pytest.raises(ProviderUnconfigured):
            await models(host)
    assert error.hint == (
        "set ANTHROPIC_API_KEY, or store a key: `sideband secrets set anthropic --origin https://api.anthropic.com`"
    )


async def test_a_configured_secret_that_is_bound_elsewhere_is_not_replaced(
    open_host, server, store, *, key, listen, monkeypatch
):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-the-environment")
    store.keys["mine"] = (key, "https://api.anthropic.com")
    async with open_host(key="mine") as host:
        error = await refusal(host, listen)
    assert "`mine`" in error.message
    assert error.hint == "bind it"
    assert not server.seen


async def test_a_store_that_fails_is_named_if_there_is_no_other_key(
    open_host, server, store, *, key, listen, asked, monkeypatch
):
    store.failure = OpFailed("the keyring is locked", code="secrets.locked", hint="unlock it")
    async with open_host() as host:
        error = await refusal(host, listen)
        assert "locked" in error.message
        assert error.hint == "unlock it"
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        assert (await asked(host))["x-api-key"] == key


@pytest.mark.parametrize("bad", ["two words", "line\nbreak", "grüß"])
async def test_a_key_that_is_no_header_is_refused_without_showing_it(open_host, server, listen, monkeypatch, bad):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
    monkeypatch.setenv("ANTHROPIC_API_KEY", bad)
    async with open_host() as host:
        error = await refusal(host, listen)
    assert "ANTHROPIC_API_KEY" in error.message
    assert bad not in error.message


async def test_an_address_of_the_environment_that_is_none_is_named(open_host, listen, monkeypatch):
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
)
async def test_a_configuration_that_can_not_be_meant_is_refused(open_host, config):
    async with open_host(**config) as host:
        with pytest.raises(PluginError):
            await host.broker.ops.provider("anthropic")
