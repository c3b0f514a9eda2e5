from secrets import token_hex

import anyio
import pytest
from sideband.ops import OpDenied
from sideband_secrets import (
    SecretAudience,
    SecretMissing,
    SecretReadOnly,
    VaultDenied,
    VaultError,
    VaultLimited,
    VaultMalformed,
    VaultMount,
    VaultSealed,
    VaultTokenMissing,
    VaultUntrusted,
)
from sideband_secrets._config import VaultConfig
from sideband_secrets._vault import VaultBackend
from sideband_secrets._vault_client import VaultClient

pytestmark = pytest.mark.anyio

ORIGIN = "https://api.example.org"
VALUE = "s3cr3t-value"


@pytest.fixture
def name():
    return f"token-{token_hex(4)}"


@pytest.fixture
def open_with(open_host, monkeypatch):
    """Return a function that opens a host with a Vault source and the root token."""
    monkeypatch.setenv("VAULT_TOKEN", "root")

    def open_with(server, *, others=("vault",), **more):
        settings = {"address": server.address} | more.pop("vault", {})
        return open_host(backend="memory", sources=others, vault=settings, **more)

    return open_with


async def read(host, name):
    return await host.op("secrets.read", {"name": name})


async def test_fields_set_origins_and_headers(vault, open_with, name):
    vault.put(name, value=VALUE, origins=[ORIGIN, "http://127.0.0.1:80/"], headers={"X-Key": "k={value}"})
    async with open_with(vault) as host:
        sent = await host.op("probe.send", {"handle": name, "audience": ORIGIN})
        assert sent["headers"] == f"5:{len('k=' + VALUE)}"
        with pytest.raises(SecretAudience):
            await host.op("probe.send", {"handle": name, "audience": "https://evil.test"})
        assert host.redactor.text(VALUE) == f"[redacted:{name}]"


async def test_origins_and_headers_may_be_text(vault, open_with, name):
    vault.put(name, value=VALUE, origins=f"{ORIGIN}, https://b.test", headers='{"X-Key": "{value}"}')
    async with open_with(vault) as host:
        assert (await host.op("probe.send", {"handle": name, "audience": "https://b.test"}))["headers"]


async def test_configuration_overrides_field_and_origins(vault, open_with, name):
    vault.put(name, password=VALUE, origins=["https://evil.test"])
    overrides = {"secrets": {name: {"field": "password", "origins": [ORIGIN]}}}
    async with open_with(vault, vault=overrides) as host:
        assert await host.op("probe.send", {"handle": name, "audience": ORIGIN})
        with pytest.raises(SecretAudience):
            await host.op("probe.send", {"handle": name, "audience": "https://evil.test"})


async def test_base64_field_contains_bytes(vault, open_with, name):
    vault.put(name, base64="AP+AgQ==")
    async with open_with(vault) as host:
        assert await host.op("secrets.read_binary", {"name": name}) == b"\x00\xff\x80\x81"


async def test_mount_and_prefix_select_the_path(vault, open_with, name):
    mount = f"mount-{name}"
    vault.ask("POST", f"sys/mounts/{mount}", {"type": "kv", "options": {"version": "2"}})
    vault.ask("POST", f"{mount}/data/team/a/{name}", {"data": {"value": VALUE}})
    async with open_with(vault, vault={"mount": mount, "prefix": "/team/a/"}) as host:
        assert await read(host, name) == VALUE
        (item,) = (await host.op("secrets.list", {}))["items"]
        assert (item["name"], item["source"]) == (name, "vault")


async def test_namespace_is_sent(vault, open_with, name):
    vault.ask("POST", f"sys/namespaces/{name}")
    there = {"X-Vault-Namespace": name}
    vault.admin.post(
        "sys/mounts/secret", json={"type": "kv", "options": {"version": "2"}}, headers=there
    ).raise_for_status()
    vault.admin.post("secret/data/inside", json={"data": {"value": VALUE}}, headers=there).raise_for_status()
    async with open_with(vault, vault={"namespace": name}) as host:
        assert await read(host, "inside") == VALUE
    async with open_with(vault) as host:
        with pytest.raises(SecretMissing):
            await read(host, "inside")


async def test_latest_version_is_read(vault, open_with, name):
    vault.put(name, value="old-value")
    async with open_with(vault) as host:
        assert await read(host, name) == "old-value"
        vault.put(name, value="new-value")
        assert await read(host, name) == "new-value"
        item = next(one for one in (await host.op("secrets.list", {}))["items"] if one["name"] == name)
        assert item["version"] == 2
        assert item["updated"].endswith("Z")
        assert host.redactor.text("old-value new-value") == f"[redacted:{name}] [redacted:{name}]"


async def test_secret_deleted_on_the_server_is_missing(vault, open_with, name):
    vault.put(name, value=VALUE)
    async with open_with(vault) as host:
        vault.ask("DELETE", f"secret/data/{name}")
        with pytest.raises(SecretMissing):
            await read(host, name)
        vault.ask("PUT", f"secret/destroy/{name}", {"versions": [1]})
        with pytest.raises(SecretMissing):
            await read(host, name)


async def test_source_is_read_only(vault, open_with, name):
    vault.put(name, value=VALUE)
    async with open_with(vault) as host:
        for op, more in (("set", {"value": "x"}), ("rotate", {"value": "x"}), ("delete", {}), ("rollback", {})):
            with pytest.raises(SecretReadOnly) as caught:
                await host.op(f"secrets.{op}", {"name": name} | more)
            assert caught.value.code == "secrets.read_only"
    assert vault.ask("GET", f"secret/data/{name}")["data"]["data"] == {"value": VALUE}


async def test_local_secrets_come_first_then_sources_in_order(vault, open_with, name, monkeypatch):
    vault.put(name, value="of-the-server")
    monkeypatch.setenv("SOME_TOKEN", "of-the-environment")
    environment = {name: {"variable": "SOME_TOKEN"}}
    for others, expected in (
        (["environment", "vault"], "of-the-environment"),
        (["vault", "environment"], "of-the-server"),
    ):
        async with open_with(vault, others=others, environment=environment) as host:
            assert await read(host, name) == expected
    async with open_with(vault) as host:
        await host.op("secrets.set", {"name": f"{name}-own", "value": "own-value"})
        vault.put(f"{name}-own", value="of-the-server")
        assert await read(host, f"{name}-own") == "own-value"
        assert (await host.op("secrets.set", {"name": f"{name}-own", "value": "another"}))["source"] == "memory"


async def test_list_omits_invalid_and_ungranted_secrets(vault, open_with, name):
    vault.put(f"{name}/good", value=VALUE)
    vault.put(f"{name}/other", value=VALUE)
    vault.put(f"{name}/Not-A-Name", value=VALUE)
    vault.put(f"{name}/without-value", user="x")
    vault.put(f"{name}/folder/below", value=VALUE)
    async with open_with(vault, vault={"prefix": name}) as host:
        listed = await host.op("secrets.list", {})
        assert [one["name"] for one in listed["items"]] == ["good", "other"]
        listed = await host.op("secrets.list", {}, grants=["secrets:name=good"])
        assert [one["name"] for one in listed["items"]] == ["good"]


async def test_list_omits_secrets_that_the_token_may_not_read(vault, open_with, name, monkeypatch):
    vault.put(f"{name}/good", value=VALUE)
    vault.put(f"{name}/other", value=VALUE)
    vault.policy(
        name,
        f'path "secret/metadata/{name}" {{ capabilities = ["list"] }}\n'
        f'path "secret/data/{name}/good" {{ capabilities = ["read"] }}',
    )
    monkeypatch.setenv("VAULT_TOKEN", vault.token(name)["client_token"])
    async with open_with(vault, vault={"prefix": name}) as host:
        listed = await host.op("secrets.list", {})
    assert [one["name"] for one in listed["items"]] == ["good"]
    assert listed["problems"] == {}


async def test_list_reports_the_error_of_a_source(vault, open_with, monkeypatch):
    monkeypatch.setenv("VAULT_TOKEN", "wrong-token")
    async with open_with(vault) as host:
        listed = await host.op("secrets.list", {})
        assert listed["items"] == []
        assert "denies access" in listed["problems"]["vault"]


INVALID = [
    ({"user": "x"}, "no text field `value`"), ({"value": 7}, "no text field `value`"), ({"value": ""}, "value"),
    ({"value": "x" * 65537}, "value"), ({"base64": "%%%"}, "no text field"),
    ({"value": VALUE, "origins": ["https://*.test"]}, "origins"), ({"value": VALUE, "origins": 7}, "origins"),
    ({"value": VALUE, "origins": "api.example.org"}, "origins"),
    ({"value": VALUE, "headers": "no JSON"}, "headers"), ({"value": VALUE, "headers": {"Host": "{value}"}}, "headers"),
    ({"value": VALUE, "headers": {"X": VALUE}}, "headers"),
]  # fmt: skip


async def test_error_for_an_invalid_secret_omits_its_value(vault, open_with, name):
    async with open_with(vault) as host:
        for fields, message in INVALID:
            vault.put(name, **fields)
            with pytest.raises(VaultMalformed, match=message) as caught:
                await read(host, name)
            assert caught.value.code == "secrets.vault_malformed"
            assert VALUE not in str(caught.value.as_dict())


class TestToken:
    async def test_token_file_is_read_again_after_a_denial(self, vault, open_with, name, tmp_path):
        vault.put(name, value=VALUE)
        file = tmp_path / "token"
        file.write_text("expired-token\n")
        file.chmod(0o600)
        async with open_with(vault, vault={"token": {"file": str(file)}}) as host:
            with pytest.raises(VaultDenied):
                await read(host, name)
            file.write_text("root\n")
            assert await read(host, name) == VALUE

    async def test_revoked_token_is_replaced_from_its_file(self, vault, open_with, name, tmp_path):
        vault.put(name, value=VALUE)
        first = vault.token("root")["client_token"]
        file = tmp_path / "token"
        file.write_text(first)
        file.chmod(0o600)
        async with open_with(vault, vault={"token": {"file": str(file)}}) as host:
            assert await read(host, name) == VALUE
            vault.ask("POST", "auth/token/revoke", {"token": first})
            file.write_text("root")
            assert await read(host, name) == VALUE

    async def test_token_file_readable_by_others_is_rejected(self, vault, open_with, name, tmp_path):
        file = tmp_path / "token"
        file.write_text("root")
        file.chmod(0o644)
        async with open_with(vault, vault={"token": {"file": str(file)}}) as host:
            with pytest.raises(PermissionError, match="accessible by other users"):
                await read(host, name)

    async def test_token_can_be_a_local_secret_bound_to_the_server(self, vault, open_with, name):
        vault.put(name, value=VALUE)
        vault.put("vault-token", value="not-this-one")
        async with open_with(vault, vault={"token": {"handle": "vault-token"}}) as host:
            with pytest.raises(VaultTokenMissing):
                await read(host, name)
            await host.op("secrets.set", {"name": "vault-token", "value": "root", "origins": [ORIGIN]})
            with pytest.raises(SecretAudience):
                await read(host, name)
            await host.op("secrets.set", {"name": "vault-token", "value": "root", "origins": [vault.address]})
            assert await read(host, name) == VALUE

    async def test_missing_or_invalid_token_is_an_error(self, vault, open_with, name, monkeypatch):
        for value in (None, "", "a b", "a\nX-Vault-Namespace: other", "\u00e4"):
            monkeypatch.delenv("VAULT_TOKEN") if value is None else monkeypatch.setenv("VAULT_TOKEN", value)
            async with open_with(vault) as host:
                with pytest.raises(VaultTokenMissing, match="VAULT_TOKEN") as caught:
                    await read(host, name)
        assert caught.value.code == "secrets.vault_token"

    async def test_token_is_redacted(self, vault, open_with, name, monkeypatch):
        token = vault.token("root")["client_token"]
        monkeypatch.setenv("VAULT_TOKEN", token)
        async with open_with(vault) as host:
            with pytest.raises(SecretMissing):
                await read(host, name)
            assert host.redactor.text(token) == "[redacted:vault-token]"

    async def test_token_is_renewed_after_half_of_its_lifetime(self, vault, name):
        vault.put(name, value=VALUE)
        vault.policy(name, f'path "secret/data/{name}" {{ capabilities = ["read"] }}')
        token = vault.token(name, "default", ttl="60s", renewable=True)["client_token"]
        time = [0.0]
        tokens = []

        async def answer():
            tokens.append(token)
            return token

        config = VaultConfig(address=vault.address)
        client = VaultClient(config, vault.address, answer, clock=lambda: time[0])
        backend = VaultBackend(config, client)
        try:
            await backend.read(name)
            time[0] = 25
            await backend.read(name)
            look = {"token": token}
            assert "last_renewal_time" not in vault.ask("POST", "auth/token/lookup", look)["data"]
            time[0] = 31
            assert (await backend.read(name)).value == VALUE.encode()
            assert vault.ask("POST", "auth/token/lookup", look)["data"]["last_renewal_time"]
        finally:
            await client.aclose()
        assert tokens == [token]


async def test_path_outside_of_the_policy_is_denied(vault, open_with, name, monkeypatch):
    vault.put(name, value=VALUE)
    monkeypatch.setenv("VAULT_TOKEN", vault.token()["client_token"])
    async with open_with(vault) as host:
        with pytest.raises(VaultDenied, match=f"secret/data/{name}") as caught:
            await read(host, name)
    assert caught.value.code == "secrets.vault_denied"


async def test_missing_mount_or_version_1_engine_is_an_error(vault, open_with, name):
    vault.ask("POST", f"sys/mounts/old-{name}", {"type": "kv", "options": {"version": "1"}})
    vault.ask("POST", f"old-{name}/data/{name}", {"value": VALUE})
    for mount in ("nowhere", f"old-{name}"):
        async with open_with(vault, vault={"mount": mount}) as host:
            with pytest.raises(VaultMount, match=mount) as caught:
                await read(host, name)
        assert caught.value.code == "secrets.vault_mount"


async def test_exceeded_quota_is_a_retryable_error(vault, open_with, name):
    mount = f"slow-{name}"
    vault.ask("POST", f"sys/mounts/{mount}", {"type": "kv", "options": {"version": "2"}})
    vault.ask("POST", f"sys/quotas/rate-limit/{name}", {"rate": 0.0001, "path": mount})
    async with open_with(vault, vault={"mount": mount}) as host:
        with pytest.raises(SecretMissing):
            await read(host, name)
        with pytest.raises(VaultLimited) as caught:
            await read(host, name)
    assert (caught.value.code, caught.value.retryable) == ("secrets.vault_limited", True)


async def test_sealed_server_is_a_retryable_error(own_vault, open_with, name):
    async with open_with(own_vault) as host:
        with pytest.raises(SecretMissing):
            await read(host, name)
        own_vault.ask("PUT", "sys/seal")
        with pytest.raises(VaultSealed) as caught:
            await read(host, name)
    assert (caught.value.code, caught.value.retryable) == ("secrets.vault_sealed", True)


class TestTls:
    async def test_configured_authority_is_trusted(self, vault_with_tls, open_with, name):
        vault_with_tls.put(name, value=VALUE)
        async with open_with(vault_with_tls, vault={"ca_file": str(vault_with_tls.ca_file)}) as host:
            assert await read(host, name) == VALUE

    async def test_unknown_authority_is_not_trusted(self, vault_with_tls, open_with, name):
        async with open_with(vault_with_tls) as host:
            with pytest.raises(VaultUntrusted) as caught:
                await read(host, name)
        assert caught.value.code == "secrets.vault_untrusted"

    async def test_invalid_ca_file_is_an_error(self, vault_with_tls, open_with, name, tmp_path):
        for content in (None, "no certificate"):
            file = tmp_path / "ca.pem"
            if content:
                file.write_text(content)
            async with open_with(vault_with_tls, vault={"ca_file": str(file)}) as host:
                with pytest.raises(VaultError, match=r"ca\.pem"):
                    await read(host, name)


async def test_grants_apply_to_secrets_of_the_server(vault, open_with, name):
    vault.put(name, value=VALUE, origins=[ORIGIN])
    async with open_with(vault) as host:
        for grants in ([], ["secrets:name=other"], [f"secrets:name={name}"]):
            with pytest.raises(OpDenied):
                await host.op("secrets.read", {"name": name}, grants=grants)
        assert await host.op(
            "probe.send", {"handle": name, "audience": ORIGIN}, grants=[f"secrets:name={name}", "probe"]
        )


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_concurrent_reads_succeed(vault, open_with, name):
    vault.put(name, value=VALUE)
    found = []

    async def one(host):
        found.append(await read(host, name))

    async with open_with(vault) as host, anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(one, host)
    assert found == [VALUE] * 20
