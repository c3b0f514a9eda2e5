"""Lookup of addresses and keys. A key is sent only to the origin it belongs to."""

import pytest
from attrs import evolve
from sideband.ops import OpFailed
from sideband.providers import ProviderUnconfigured
from sideband_model_client import KeyForm, find_access

pytestmark = pytest.mark.anyio

KEY = "sk-key-of-the-test-0123456789"
OFFICIAL = "https://api.acme.example"
GATEWAY = "https://models.example.org"
LOCAL = "http://127.0.0.1:8000"


@pytest.fixture
def find(acme, ctx):
    async def call(service=acme, **fields):
        return await find_access(service, ctx, provider="acme", **fields)

    return call


@pytest.fixture
def variables(monkeypatch):
    def put(**given):
        for name, value in given.items():
            monkeypatch.setenv(f"ACME_{name}", value)

    return put


async def unconfigured(find, *args, **fields):
    with pytest.raises(ProviderUnconfigured) as caught:
        await find(*args, **fields)
    assert not caught.value.retryable
    return caught.value


async def test_stored_key_is_sent_in_the_header_of_the_service(find, ctx):
    ctx.add("acme", KEY, OFFICIAL)
    access = await find()
    assert access.address.url == f"{OFFICIAL}/v1"
    assert access.headers == {"user-agent": "sideband-acme/1", "authorization": f"Bearer {KEY}"}
    assert ctx.resolved == [("acme", OFFICIAL)]
    assert KEY not in repr(access)


async def test_stored_key_may_define_its_own_header(find, ctx):
    ctx.add("acme", KEY, OFFICIAL, **{"X-Key": KEY})
    assert (await find()).headers == {"user-agent": "sideband-acme/1", "x-key": KEY}


async def test_configured_headers_do_not_replace_the_key(find, ctx):
    ctx.add("acme", KEY, OFFICIAL, **{"X-Key": KEY})
    headers = {"User-Agent": "mine", "X-Title": "team", "X-KEY": "other"}
    assert (await find(headers=headers)).headers == {"user-agent": "mine", "x-title": "team", "x-key": KEY}


async def test_stored_key_takes_precedence_over_a_variable(find, ctx, variables):
    variables(API_KEY="sk-of-the-variable")
    ctx.add("acme", KEY, OFFICIAL)
    assert (await find()).headers["authorization"] == f"Bearer {KEY}"


async def test_address_and_key_are_read_from_variables(find, ctx, variables):
    variables(BASE_URL=f" {GATEWAY}/v1/ ", API_KEY=f" {KEY}\n")
    access = await find()
    assert access.address.url == f"{GATEWAY}/v1"
    assert access.headers["authorization"] == f"Bearer {KEY}"
    assert ctx.protected == {"ACME_API_KEY": KEY}
    assert "ACME_API_KEY" in access.key_hint


async def test_each_variable_has_its_own_header(find, variables):
    variables(TOKEN=KEY)
    assert (await find()).headers["x-token"] == KEY


async def test_blank_variable_counts_as_unset(find, variables, ctx):
    variables(BASE_URL=" ", API_KEY=" ", TOKEN=KEY)
    access = await find()
    assert (access.address.origin, access.headers["x-token"]) == (OFFICIAL, KEY)


async def test_key_from_a_variable_is_not_sent_to_another_address(find, variables, ctx):
    variables(API_KEY=KEY)
    assert KEY not in str((await find(base_url=LOCAL)).headers)
    error = await unconfigured(find, base_url=GATEWAY)
    assert f"no key for {GATEWAY}" in error.message
    assert f"ACME_API_KEY belongs to {OFFICIAL}" in error.message
    assert KEY not in str(error.as_dict())
    assert ctx.protected == {"ACME_API_KEY": KEY}


async def test_unused_key_in_a_variable_is_not_validated(find, variables):
    variables(API_KEY="two words")
    assert "authorization" not in (await find(base_url=LOCAL)).headers


async def test_service_without_variables_ignores_the_environment(find, acme, variables):
    variables(BASE_URL=GATEWAY, API_KEY=KEY)
    service = evolve(acme, address_variable="", key_variables={})
    assert "authorization" not in (await find(service, base_url=LOCAL)).headers
    error = await unconfigured(find, service)
    assert f"no key for {OFFICIAL}" in error.message
    assert "ACME_API_KEY" not in error.hint


async def test_configured_address_takes_precedence_over_the_variable(find, variables):
    variables(BASE_URL="not an address")
    assert (await find(base_url=LOCAL)).address.origin == LOCAL


async def test_loopback_address_needs_no_key(find):
    access = await find(base_url=LOCAL)
    assert access.headers == {"user-agent": "sideband-acme/1"}
    assert access.secrets == ()
    assert "sideband secrets set acme --origin http://127.0.0.1:8000" in access.key_hint


async def test_keyless_service_does_not_look_up_a_key(find, ctx, variables):
    variables(API_KEY=KEY)
    ctx.add("acme", KEY, OFFICIAL)
    access = await find(keyless=True)
    assert access.headers == {"user-agent": "sideband-acme/1"}
    assert ctx.resolved == []


async def test_missing_key_hint_lists_every_way_to_set_one(find):
    error = await unconfigured(find)
    assert error.message == f"acme: no key for {OFFICIAL}"
    assert error.hint.startswith("set ACME_API_KEY, or ")
    assert f"`sideband secrets set acme --origin {OFFICIAL}`" in error.hint
    assert error.hint.endswith(", or use another one")
    assert (error.exit_code, error.cause) == (5, "OpFailed")


async def test_missing_key_hint_for_another_address_names_both_variables(find):
    error = await unconfigured(find, base_url=GATEWAY)
    assert error.hint.startswith("set ACME_API_KEY and ACME_BASE_URL, or ")
    assert error.hint.endswith(f"`sideband secrets set acme --origin {GATEWAY}`")


async def test_error_names_the_origin_of_a_key_bound_elsewhere(find, ctx):
    ctx.add("acme", KEY, OFFICIAL)
    error = await unconfigured(find, base_url=GATEWAY)
    assert f"no key for {GATEWAY} (`acme` is bound to {OFFICIAL})" in error.message
    assert f"sideband secrets set acme --origin {GATEWAY}" in error.hint


async def test_configured_key_is_not_replaced_by_another(find, ctx, variables):
    variables(API_KEY=KEY)
    ctx.add("acme", KEY, OFFICIAL)
    missing = await unconfigured(find, key="mine")
    assert missing.message == "acme: cannot use the key `mine`: there is no secret `mine`"
    assert f"`sideband secrets set mine --origin {OFFICIAL}`" in missing.hint
    assert "ACME_API_KEY" not in missing.hint
    await unconfigured(find, key="mine", base_url=LOCAL)
    ctx.add("mine", KEY, GATEWAY)
    bound = await unconfigured(find, key="mine")
    assert f"bound to {GATEWAY}" in bound.message
    assert bound.hint == "bind it"


async def test_failed_store_is_reported_if_no_other_key_exists(find, ctx, variables):
    ctx.failure = OpFailed("the keyring is locked", code="secrets.locked", hint="unlock it")
    error = await unconfigured(find)
    assert error.message == "acme: cannot use the key `acme`: the keyring is locked"
    assert error.hint == "unlock it"
    variables(API_KEY=KEY)
    assert (await find()).headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("code", ["plugin.denied", "op.denied"])
async def test_denied_store_is_reported(find, ctx, code):
    ctx.failure = OpFailed("secrets are not for you", code=code)
    assert "(secrets are not for you)" in (await unconfigured(find)).message


async def test_missing_store_is_not_reported(find, ctx):
    ctx.failure = OpFailed("there is no plugin `secrets`", code="plugin.unknown")
    assert (await unconfigured(find)).message == f"acme: no key for {OFFICIAL}"


@pytest.mark.parametrize("bad", ["two words", "line\nbreak", "grüß", "a\x00b"])
async def test_key_not_allowed_in_a_header_is_rejected_without_showing_it(find, ctx, variables, bad):
    ctx.add("acme", bad, OFFICIAL)
    error = await unconfigured(find)
    assert "the key `acme`" in error.message
    assert bad not in str(error.as_dict())
    ctx.secrets.clear()
    if "\x00" not in bad:
        variables(API_KEY=bad)
        error = await unconfigured(find)
        assert "the key in ACME_API_KEY" in error.message
        assert bad not in str(error.as_dict())


async def test_empty_key_is_rejected(find, ctx):
    ctx.add("acme", "", OFFICIAL)
    assert "empty" in (await unconfigured(find)).message


async def test_error_names_the_source_of_an_invalid_address(find, variables):
    assert "invalid `base_url`" in (await unconfigured(find, base_url="ftp://x")).message
    variables(BASE_URL="api.example.org")
    error = await unconfigured(find)
    assert "invalid `ACME_BASE_URL`" in error.message
    assert "https://api.acme.example/v1" in error.hint


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": f"Bearer {KEY}"}, {"X-Key": KEY}, {"Authorization": "Basic b3RoZXI6Zm9ybQ=="}]
)
async def test_key_is_removed_from_text_in_every_form(find, ctx, headers):
    ctx.add("acme", KEY, OFFICIAL, **headers)
    access = await find()
    assert access.without_secrets(f"<{KEY}>") == "<[key]>"
    for value in headers.values():
        assert access.without_secrets(f"<{value}> <{value.split()[-1]}>") == "<[key]> <[key]>"


async def test_short_key_is_not_removed_from_text(find, acme, ctx):
    ctx.add("acme", "a", OFFICIAL)
    access = await find(evolve(acme, key_form=KeyForm("x-api-key")))
    assert access.without_secrets("a banana") == "a banana"
