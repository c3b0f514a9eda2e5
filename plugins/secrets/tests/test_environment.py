import os

import pytest
from pydantic import ValidationError
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


async def test_configured_variable_is_a_secret_with_the_configured_origins(host):
    sent = await host.op("probe.send", {"handle": "token", "audience": ORIGIN})
    assert sent["headers"] == f"5:{len('k=' + VALUE)}"
    with pytest.raises(SecretAudience):
        await host.op("probe.send", {"handle": "token", "audience": "https://evil.test"})


async def test_other_variables_are_not_secrets(host):
    for name in ("some_token", "other_token", "path"):
        with pytest.raises(SecretMissing):
            await host.op("secrets.read", {"name": name})


async def test_value_is_redacted_before_it_is_used(host):
    await host.op("secrets.list", {}, grants=["secrets:name=nothing"])
    assert host.redactor.text(f"{VALUE} another-value") == "[redacted:token] another-value"


async def test_list_contains_the_source(host):
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


async def test_variable_may_contain_bytes(host, monkeypatch):
    monkeypatch.setitem(os.environb, b"SOME_TOKEN", b"\xff\x80\x81\x82")
    assert await host.op("secrets.read_binary", {"name": "token"}) == b"\xff\x80\x81\x82"


async def test_source_is_read_only(host):
    for op, more in (("set", {"value": "x"}), ("rotate", {"value": "x"}), ("delete", {}), ("rollback", {})):
        with pytest.raises(SecretReadOnly, match="environment"):
            await host.op(f"secrets.{op}", {"name": "token"} | more)
    assert await host.op("secrets.read", {"name": "token"}) == VALUE


async def test_error_names_the_unset_variable(host, monkeypatch):
    for value in (None, ""):
        monkeypatch.delenv("SOME_TOKEN") if value is None else monkeypatch.setenv("SOME_TOKEN", value)
        with pytest.raises(SecretMissing, match="SOME_TOKEN"):
            await host.op("secrets.read", {"name": "token"})
    assert (await host.op("secrets.list", {}))["items"] == []


async def test_local_secret_can_replace_an_unset_variable(host, monkeypatch):
    monkeypatch.delenv("SOME_TOKEN")
    await host.op("secrets.set", {"name": "token", "value": "own-value"})
    monkeypatch.setenv("SOME_TOKEN", VALUE)
    assert await host.op("secrets.read", {"name": "token"}) == "own-value"


VAULT = {"address": "http://127.0.0.1:8200"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sources": ["environment"]}, "environment.NAME"),
        ({"sources": ["vault"]}, "vault.address"),
        ({"environment": SOURCE}, "missing in `sources`"),
        ({"vault": VAULT}, "missing in `sources`"),
        ({"sources": ["vault", "vault"], "vault": VAULT}, "duplicates"),
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
def test_invalid_configuration_is_rejected(config, message):
    with pytest.raises(ValidationError, match=message):
        Config.model_validate(config)


async def test_op_with_an_invalid_configuration_is_an_error(open_host):
    async with open_host(backend="memory", sources=["vault"]) as host:
        with pytest.raises(OpError, match=r"vault\.address"):
            await host.op("secrets.list", {})


@pytest.mark.parametrize("address", ["https://vault.internal:8200", "http://127.0.0.1:8200", "http://[::1]:8200"])
def test_https_and_loopback_addresses_are_accepted(address):
    assert Config.model_validate({"sources": ["vault"], "vault": {"address": address}}).vault.address == address
