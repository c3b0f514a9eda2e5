import pytest
from sideband.ops import OpDenied
from sideband_secrets import SecretAudience, SecretBinary, SecretMissing, SecretUnusable

pytestmark = pytest.mark.anyio

ORIGIN = "https://api.example.org"


@pytest.fixture
async def host(open_host):
    async with open_host(backend="memory") as host:
        yield host


def store(host, value="s3cr3t-value", **more):
    return host.op("secrets.set", {"name": "token", "value": value, "origins": [ORIGIN], **more})


def send(host, audience=ORIGIN, **more):
    return host.op("probe.send", {"handle": "token", "audience": audience}, **more)


async def test_credential_is_resolved_for_its_origin(host):
    await store(host)
    assert (await send(host))["length"] == len("s3cr3t-value")


@pytest.mark.parametrize(
    "audience", ["HTTPS://API.EXAMPLE.ORG", "https://api.example.org:443", "https://api.example.org/"]
)
async def test_equivalent_spelling_of_the_origin_is_accepted(host, audience):
    await store(host)
    assert (await send(host, audience))["length"] == len("s3cr3t-value")


async def test_other_origins_are_rejected(host):
    await store(host)
    audiences = [
        "http://api.example.org", "https://example.org", "https://api.example.org.evil.test",
        "https://api.example.org:8443", "https://x.api.example.org", "https://api.example.org@evil.test",
        "https://evil.test/https://api.example.org", "https://evil.test#@api.example.org", "", "null",
        "https://api.example.org:443:443", "https://\u0430pi.example.org",
    ]  # fmt: skip
    for audience in audiences:
        with pytest.raises(SecretAudience) as caught:
            await send(host, audience)
        assert caught.value.code == "secrets.audience"


async def test_secret_without_origins_is_never_sent(host):
    await store(host, origins=[])
    with pytest.raises(SecretAudience):
        await send(host)


async def test_missing_secret_error_hints_at_how_to_store_it(host):
    with pytest.raises(SecretMissing) as caught:
        await send(host)
    assert caught.value.hint == f"store it with `sideband secrets set token --origin {ORIGIN}`"


async def test_use_needs_a_grant_for_the_name(host):
    await store(host)
    for grants in (["probe"], ["secrets:name=other"], ["secrets:name=token,mode=reveal"]):
        with pytest.raises(OpDenied):
            await send(host, grants=grants)
    await send(host, grants=["secrets:name=token"])


async def test_placeholders_in_headers_are_filled_in(host):
    await store(host, "ab", headers={"X-Key": "k={value}", "Authorization": "Basic {base64}"})
    assert (await send(host))["headers"] == "5:4 13:10"


async def test_placeholder_in_a_value_is_not_expanded(host):
    await store(host, "{base64}", headers={"X": "{value}"})
    assert (await send(host))["headers"] == "1:8"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "grüß", "a\x00b"])
async def test_value_that_is_invalid_in_a_header_is_rejected(host, value):
    await store(host, value, headers={"X": "{value}"})
    with pytest.raises(SecretUnusable) as caught:
        await send(host)
    assert value not in str(caught.value.as_dict())


async def test_binary_secret_is_rejected_as_credential(host):
    await store(host, b"\x00\xff\x80\x81")
    with pytest.raises(SecretBinary):
        await send(host)
