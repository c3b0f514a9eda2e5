import os

import pytest
from sideband.ops import OpError
from sideband_secrets import Config, SecretAudience, SecretMissing, SecretReadOnly

pytestmark = pytest.mark.anyio

ORIGIN = "https://api.example.org"
VALUE = "s3cr3t-value"
SOURCE = {"token": {"variable": "SOME_TOKEN", "origins": [ORIGIN], "headers": {"X-Key": "k={value}"}}}


@pytest.fixture
def config():
    return {"backend": "memory", "sources": ["environment"], "environment": SOURCE}


@pytest.fixture
async def host(open_host, config, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", VALUE)
    monkeypatch.setenv("OTHER_TOKEN", "another-value")
    async with open_host(**config) as host:
        yield host


async def test_a_named_variable_is_a_secret_with_the_origins_of_the_configuration(host):
    sent = await host.op("probe.send", {"handle": "token", "audience": ORIGIN})
    assert sent["headers"] == f"5:{len('k=' + VALUE)}"
    with pytest.raises(SecretAudience):
        await host.op("probe.send", {"handle": "token", "audience": "https://evil.test"})


async def test_other_variables_are_none(host):
    for name in ("some_token", "other_token", "path"):
        with pytest.raises(SecretMissing):
            await host.op("secrets.read", {"name": name})


async def test_its_value_is_kept_out_of_everything_although_nobody_asked_for_it(host):
    await host.op("secrets.list", {}, grants=["secrets:name=nothing"])
    assert host.redactor.text(f"{VALUE} another-value") == "[redacted:token] another-value"


async def test_a_list_names_it_with_its_source(host):
    assert (await host.op("secrets.list", {}))["items"] == [
        {
            "name": "token",
            "origins": [ORIGIN],
            "kind": "text",
            "updated": None,
            "version": None,
            "source": "environment",
            "previous_until": None,
        }
    ]


async def test_bytes_in_a_variable_are_bytes(host, monkeypatch):
    monkeypatch.setitem(os.environb, b"SOME_TOKEN", b"\xff\x80\x81\x82")
    assert await host.op("secrets.read_binary", {"name": "token"}) == b"\xff\x80\x81\x82"


async def test_it_is_only_read(host):
    for op, more in (("set", {"value": "x"}), ("rotate", {"value": "x"}), ("delete", {}), ("rollback", {})):
        with pytest.raises(SecretReadOnly, match="environment"):
            await host.op(f"secrets.{op}", {"name": "token"} | more)
    assert await host.op("secrets.read", {"name": "token"}) == VALUE


async def test_a_variable_that_is_not_set_is_named(host, monkeypatch):
    for value in (None, ""):
        monkeypatch.delenv("SOME_TOKEN") if value is None else monkeypatch.setenv("SOME_TOKEN", value)
        with pytest.raises(SecretMissing, match="SOME_TOKEN"):
            await host.op("secrets.read", {"name": "token"})
    assert (await host.op("secrets.list", {}))["items"] == []


async def test_an_own_secret_takes_its_place_where_the_variable_is_not_set(host, monkeypatch):
    monkeypatch.delenv("SOME_TOKEN")
    await host.op("secrets.set", {"name": "token", "value": "own-value"})
    monkeypatch.setenv("SOME_TOKEN", VALUE)
    assert await host.op("secrets.read", {"name": "token"}) == "own-value"


VAULT = {"address": "http://127.0.0.1:8200"}


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"sources": ["environment"]}, "environment.NAME"),
        ({"sources": ["vault"]}, "vault.address"),
        ({"environment": SOURCE}, "not in `sources`"),
        ({"vault": VAULT}, "not in `sources`"),
        ({"sources": ["vault", "vault"], "vault": VAULT}, "twice"),
        ({"sources": ["store"]}, "environment"),
        ({"sources": ["environment"], "environment": {"token": {"variable": "A=B"}}}, "variable"),
        ({"sources": ["environment"], "environment": {"Token": {"variable": "A"}}}, r"environment\.Token"),
        ({"sources": ["environment"], "environment": {"token": {"variable": "A", "origins": ["*"]}}}, "origin"),
        *(
            ({"sources": ["vault"], "vault": {"address": address}}, "address")
            for address in ("http://vault.internal:8200", "http://localhost:8200", "http://127.0.0.1.evil.test",
                            "https://user@vault", "https://vault/v1", "ftp://127.0.0.1:21", "vault", "http://10.0.0.1")
        ),
        *(
            ({"sources": ["vault"], "vault": VAULT | {key: path}}, key)
            for key in ("mount", "prefix", "namespace")
            for path in ("a/../b", "..", "a//b", "a b", "a?b", "a%2fb", "a\nb")
        ),
        ({"sources": ["vault"], "vault": VAULT | {"mount": ""}}, "mount"),
        ({"sources": ["vault"], "vault": VAULT | {"timeout": 0}}, "timeout"),
        ({"sources": ["vault"], "vault": VAULT | {"token": {"variable": "A", "handle": "b"}}}, r"vault\.token"),
    ],
)  # fmt: skip
async def test_a_configuration_that_can_not_be_meant_is_refused(open_host, config, told):
    async with open_host(backend="memory", **config) as host:
        with pytest.raises(OpError, match=told):
            await host.op("secrets.list", {})


@pytest.mark.parametrize("address", ["https://vault.internal:8200", "http://127.0.0.1:8200", "http://[::1]:8200"])
async def test_an_address_is_https_or_of_this_machine(address):
    assert Config.model_validate({"sources": ["vault"], "vault": {"address": address}}).vault.address == address
