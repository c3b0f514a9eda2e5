import json
import stat

import pytest
from sideband.ops import OpDenied, OpParamsInvalid
from sideband_secrets import SecretsKeyMissing, SecretsRekeyRefused, SecretsStorage, SecretsWrongKey

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cheap_scrypt")]

VARIABLE = "SIDEBAND_SECRETS_PASSPHRASE"
VALUE = "s3cr3t-value"
PASSPHRASE = "correct horse battery"


async def store(host):
    await host.op("secrets.set", {"name": "token", "value": VALUE})


async def read(host):
    return await host.op("secrets.read", {"name": "token"})


async def rekey(host, **params):
    return await host.op("secrets.rekey", params)


def key_files(home):
    return sorted(file.name for file in (home / "secrets").iterdir() if "key" in file.name)


async def test_new_key_file_replaces_the_old_one(open_host, home):
    async with open_host(backend="encrypted") as host:
        await store(host)
        before = (home / "secrets" / "key").read_bytes()
        assert await rekey(host, to="file") == {"opened_by": "file", "left": None}
        assert await read(host) == VALUE
    assert key_files(home) == ["key"]
    assert stat.S_IMODE((home / "secrets" / "key").stat().st_mode) == 0o600
    async with open_host(backend="encrypted") as host:
        assert await read(host) == VALUE
    (home / "secrets" / "key").write_bytes(before)
    async with open_host(backend="encrypted") as host:
        with pytest.raises(SecretsWrongKey):
            await read(host)


async def test_key_file_and_passphrase_replace_each_other(open_host, home, monkeypatch):
    async with open_host(backend="encrypted") as host:
        await store(host)
        await rekey(host, to="passphrase", passphrase=PASSPHRASE)
        assert await read(host) == VALUE
    assert key_files(home) == []
    async with open_host(backend="encrypted") as host:
        with pytest.raises(SecretsKeyMissing):
            await read(host)
    monkeypatch.setenv(VARIABLE, PASSPHRASE)
    async with open_host(backend="encrypted") as host:
        assert await read(host) == VALUE
        await rekey(host, to="file")
    monkeypatch.delenv(VARIABLE)
    async with open_host(backend="encrypted") as host:
        assert await read(host) == VALUE


async def test_new_passphrase_replaces_the_old_one(open_host, monkeypatch):
    monkeypatch.setenv(VARIABLE, "the first passphrase")
    async with open_host(backend="encrypted") as host:
        await store(host)
        await rekey(host, to="passphrase", passphrase=PASSPHRASE)
    async with open_host(backend="encrypted") as host:
        with pytest.raises(SecretsWrongKey):
            await read(host)
    monkeypatch.setenv(VARIABLE, PASSPHRASE)
    async with open_host(backend="encrypted") as host:
        assert await read(host) == VALUE


async def test_key_file_outside_of_the_home_is_never_replaced_or_removed(open_host, tmp_path):
    elsewhere = tmp_path / "stick"
    elsewhere.mkdir(mode=0o700)
    old, new = elsewhere / "old", elsewhere / "new"
    async with open_host(backend="encrypted", key_file=str(old)) as host:
        await store(host)
        kept = old.read_bytes()
        with pytest.raises(SecretsRekeyRefused) as caught:
            await rekey(host, to="file")
        assert "--key-file" in caught.value.hint
        assert await rekey(host, to="file", key_file=str(new)) == {"opened_by": "file", "left": str(old)}
    assert old.read_bytes() == kept
    async with open_host(backend="encrypted", key_file=str(old)) as host:
        with pytest.raises(SecretsWrongKey):
            await read(host)
    async with open_host(backend="encrypted", key_file=str(new)) as host:
        assert await read(host) == VALUE


async def test_key_file_can_be_moved_out_of_the_home(open_host, home, tmp_path):
    new = tmp_path / "stick" / "new"
    async with open_host(backend="encrypted") as host:
        await store(host)
        await rekey(host, to="file", key_file=str(new))
    assert key_files(home) == []
    async with open_host(backend="encrypted", key_file=str(new)) as host:
        assert await read(host) == VALUE


async def test_existing_file_is_never_used_as_new_key_file(open_host, tmp_path):
    new = tmp_path / "new"
    new.write_text("something else")
    async with open_host(backend="encrypted") as host:
        await store(host)
        with pytest.raises(SecretsStorage):
            await rekey(host, to="file", key_file=str(new))
        assert await read(host) == VALUE
    assert new.read_text() == "something else"


async def test_configuration_that_requires_one_kind_of_key_prevents_rekey(open_host, home):
    async with open_host(backend="encrypted", key="file") as host:
        await store(host)
        before = (home / "secrets" / "store.json").read_bytes()
        with pytest.raises(SecretsKeyMissing, match="requires a file"):
            await rekey(host, to="passphrase", passphrase=PASSPHRASE)
    assert (home / "secrets" / "store.json").read_bytes() == before


async def test_rekey_without_a_store_is_an_error(open_host, home):
    async with open_host(backend="encrypted") as host:
        with pytest.raises(SecretsKeyMissing, match="does not exist yet"):
            await rekey(host, to="file")
    assert key_files(home) == []


async def test_other_backends_do_not_support_rekey(open_host):
    async with open_host(backend="memory") as host:
        with pytest.raises(SecretsRekeyRefused, match="memory") as caught:
            await rekey(host, to="file")
    assert caught.value.code == "secrets.rekey"


async def test_rekey_needs_a_grant_for_all_secrets(open_host):
    async with open_host(backend="encrypted") as host:
        await store(host)
        for grant in (
            "secrets",
            "secrets:mode=write",
            "secrets:mode=rekey,name=token",
            "secrets:mode=use|reveal|write",
        ):
            with pytest.raises(OpDenied):
                await host.op("secrets.rekey", {"to": "file"}, grants=[grant])
        await host.op("secrets.rekey", {"to": "file"}, grants=["secrets:mode=rekey"])


@pytest.mark.parametrize(
    "params",
    [{"to": "passphrase"}, {"to": "file", "passphrase": PASSPHRASE}, {"to": "passphrase", "passphrase": "short"},
     {"to": "nothing"}, {"to": "file", "key_file": "relative"},
     {"to": "passphrase", "passphrase": PASSPHRASE, "key_file": "/tmp/x"}],
)  # fmt: skip
async def test_inconsistent_parameters_are_rejected(open_host, params):
    async with open_host(backend="encrypted") as host:
        await store(host)
        with pytest.raises(OpParamsInvalid) as caught:
            await rekey(host, **params)
    assert PASSPHRASE not in json.dumps(caught.value.as_dict())


async def test_new_passphrase_is_redacted(open_host, home):
    async with open_host(backend="encrypted") as host:
        await store(host)
        await rekey(host, to="passphrase", passphrase=PASSPHRASE)
        assert host.redactor.text(PASSPHRASE) == "[redacted:passphrase]"
    written = [file for file in home.rglob("*") if file.is_file() and PASSPHRASE.encode() in file.read_bytes()]
    assert written == []
