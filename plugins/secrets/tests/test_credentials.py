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


async def test_a_credential_is_had_where_it_is_bound_to(host):
    await store(host)
    assert (await send(host))["length"] == len("s3cr3t-value")


@pytest.mark.parametrize(
    "audience", ["HTTPS://API.EXAMPLE.ORG", "https://api.example.org:443", "https://api.example.org/"]
)
async def test_an_origin_written_otherwise_is_the_same(host, audience):
    await store(host)
    assert (await send(host, audience))["length"] == len("s3cr3t-value")


@pytest.mark.parametrize(
    "audience",
    ["http://api.example.org", "https://example.org", "https://api.example.org.evil.test", "https://api.example.org:8443",
     "https://x.api.example.org", "https://api.example.org@evil.test", "https://evil.test/https://api.example.org",
     "https://evil.test#@api.example.org", "", "null", "https://api.example.org:443:443", "https://\u0430pi.example.org"],
)  # fmt: skip
async def test_any_other_origin_does_not_get_it(host, audience):
    await store(host)
    with pytest.raises(SecretAudience) as caught:
        await send(host, audience)
    assert caught.value.code == "secrets.audience"


async def test_a_secret_bound_to_nothing_is_sent_nowhere(host):
    await store(host, origins=[])
    with pytest.raises(SecretAudience):
        await send(host)


async def test_a_missing_one_is_told_with_the_way_to_store_it(host):
    with pytest.raises(SecretMissing) as caught:
        await send(host)
    assert caught.value.hint == f"store it with `sideband secrets set token --origin {ORIGIN}`"


async def test_using_needs_a_grant_for_its_name(host):
    await store(host)
    for grants in (["probe"], ["secrets:name=other"], ["secrets:name=token,mode=reveal"]):
        with pytest.raises(OpDenied):
            await send(host, grants=grants)
    await send(host, grants=["secrets:name=token"])


async def test_a_header_of_its_own_is_filled_in(host):
    await store(host, "ab", headers={"X-Key": "k={value}", "Authorization": "Basic {base64}"})
    assert (await send(host))["headers"] == "5:4 13:10"


async def test_a_value_that_looks_like_a_placeholder_is_left_alone(host):
    await store(host, "{base64}", headers={"X": "{value}"})
    assert (await send(host))["headers"] == "1:8"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "grüß", "a\x00b"])
async def test_a_value_that_would_break_a_header_is_not_sent(host, value):
    await store(host, value, headers={"X": "{value}"})
    with pytest.raises(SecretUnusable) as caught:
        await send(host)
    assert value not in str(caught.value.as_dict())


async def test_bytes_are_no_credential(host):
    await store(host, b"\x00\xff\x80\x81")
    with pytest.raises(SecretBinary):
        await send(host)
