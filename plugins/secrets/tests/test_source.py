"""A new host knows all secrets that it can open without a person, before its first effect and record."""

import base64
import hashlib
import json
import os
import pty
import select
import subprocess
import sys
from contextlib import asynccontextmanager, closing

import anyio
import pytest
import secretstorage
import sideband_secrets.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import EgressRefused, Level, OpContext, OpFamily, SecretsClosed, op
from sideband_secrets import _sealing

pytestmark = pytest.mark.anyio
VALUE = "s3cr3t-value-of-the-user"
OLDER = "an-older-value-of-the-user"
HOME = "https://api.example.org"


class Sending(BaseModel):
    content: str


@op("mail.send", level=Level.RESTRICTED, record=["content"])
async def send(params: Sending, ctx: OpContext) -> str:
    """Send the content to a server that no secret is bound to."""
    ctx.check_egress("https://evil.test", {"body": params.content})
    return params.content


class Mail:
    @staticmethod
    def sideband_ops():
        return OpFamily(name="mail", ops=(send,), doc="Sends mail.")


@pytest.fixture
def start(home):
    """Return a function that starts a host like an installed one."""

    @asynccontextmanager
    async def start(policy=None, **config):
        plugins = [
            Plugin("op", "secrets", sideband_secrets.plugin),
            Plugin("secrets", "secrets", sideband_secrets.plugin),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("op", "mail", Mail),
        ]
        settings = {"policy": policy or {}, **({"plugins": {"secrets": config}} if config else {})}
        async with Host(home=home, settings=settings, plugins=plugins, autoload=False) as host:
            yield host

    return start


def store(host, value=VALUE, name="token"):
    return host.op("secrets.set", {"name": name, "value": value, "origins": [HOME]})


async def assert_knows(host, *values):
    for value in values:
        for form in (value, base64.b64encode(value.encode()).decode(), value.encode().hex()):
            with pytest.raises(EgressRefused):
                await host.op("mail.send", {"content": f"<{form}>"})
        assert "[redacted:" in host.redactor.text(value)


def ledger_of(home):
    return b"".join(path.read_bytes() for path in (home / "ledger").rglob("*") if path.is_file())


@pytest.mark.parametrize("backend", ["encrypted", "keyring"])
async def test_new_host_knows_all_stored_values(start, home, backend, request):
    if backend == "keyring":
        request.getfixturevalue("real_keyring")
    async with start(backend=backend) as host:
        await store(host, OLDER)
        await host.op("secrets.rotate", {"name": "token", "value": VALUE})
        await store(host, "the-value-of-another-secret", "other")
    async with start(backend=backend) as host:
        await assert_knows(host, VALUE, OLDER, "the-value-of-another-secret")
    assert VALUE.encode() not in ledger_of(home)
    assert b'"secrets": "closed"' not in ledger_of(home).replace(b'":"', b'": "')


async def test_store_of_an_automatic_choice_is_opened_without_configuration(start, use_keyring):
    import keyring.backends.fail

    use_keyring(keyring.backends.fail.Keyring())
    async with start() as host:
        await store(host)
    async with start() as host:
        await assert_knows(host, VALUE)


async def test_values_of_the_environment_are_known(start, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", VALUE)
    config = {"sources": ("environment",), "environment": {"token": {"variable": "SOME_TOKEN"}}}
    async with start(backend="memory", **config) as host:
        await assert_knows(host, VALUE)


@pytest.mark.usefixtures("cheap_scrypt")
async def test_store_with_a_passphrase_is_closed_until_it_is_opened(start, home, monkeypatch):
    monkeypatch.setenv("SIDEBAND_SECRETS_PASSPHRASE", "correct horse battery")
    async with start(backend="encrypted") as host:
        await store(host)
    async with start(backend="encrypted") as host:
        await assert_knows(host, VALUE, "correct horse battery")
    monkeypatch.delenv("SIDEBAND_SECRETS_PASSPHRASE")
    before = len(ledger_of(home))
    strict = {"require_open_secrets": True}
    async with start(policy=strict, backend="encrypted") as host:
        with pytest.raises(SecretsClosed, match="passphrase"):
            await host.op("mail.send", {"content": "hello"})
        lines = [line for line in ledger_of(home)[before:].splitlines() if b'"kind":"load"' not in line]
        assert sum(b'"secrets":' in line for line in lines) == 2
        monkeypatch.setenv("SIDEBAND_SECRETS_PASSPHRASE", "correct horse battery")
        await host.op("secrets.list", {})
        assert await host.op("mail.send", {"content": "hello"}) == "hello"
        await assert_knows(host, VALUE)


@pytest.mark.parametrize("damage", ["key", "store", "permissions"])
async def test_store_that_cannot_be_opened_is_closed(start, home, damage):
    async with start(backend="encrypted") as host:
        await store(host)
    if damage == "key":
        (home / "secrets" / "key").unlink()
    elif damage == "store":
        (home / "secrets" / "store.json").write_text("{}")
    else:
        (home / "secrets" / "store.json").chmod(0o644)
    async with start(policy={"require_open_secrets": True}, backend="encrypted") as host:
        with pytest.raises(SecretsClosed):
            await host.op("mail.send", {"content": "hello"})


async def test_locked_keyring_is_not_unlocked(start, lockable_keyring):
    async with start(backend="keyring") as host:
        await store(host)
    with closing(secretstorage.dbus_init()) as connection:
        secretstorage.get_default_collection(connection).lock()
        async with start(policy={"require_open_secrets": True}, backend="keyring") as host:
            with pytest.raises(SecretsClosed, match="locked"):
                await host.op("mail.send", {"content": "hello"})
        assert secretstorage.get_default_collection(connection).is_locked()


async def test_keyring_that_may_ask_the_user_is_opened_by_the_first_op(start, use_keyring):
    from keyring.backend import KeyringBackend

    entries, reads = {}, []

    class Other(KeyringBackend):
        priority = 1

        def get_password(self, service, name):
            reads.append(name)
            return entries.get((service, name))

        def set_password(self, service, name, value):
            entries[service, name] = value

    use_keyring(Other())
    async with start(backend="keyring") as host:
        await store(host)
        await store(host, OLDER, "other")
    reads.clear()
    async with start(policy={"require_open_secrets": True}, backend="keyring") as host:
        with pytest.raises(SecretsClosed, match="only an op opens it"):
            await host.op("mail.send", {"content": "hello"})
        assert reads == []
        await host.op("secrets.read", {"name": "token"})
        assert host.redactor.text(OLDER) == "[redacted:other]"
        assert await host.op("mail.send", {"content": "hello"}) == "hello"


async def test_keyring_is_neither_imported_nor_probed_without_stored_secrets(home):
    code = (
        "import sys, anyio\nfrom pathlib import Path\nfrom sideband import Host\n"
        "async def main():\n    async with Host(home=Path(sys.argv[1])):\n"
        "        print([one for one in ('keyring', 'cryptography', 'sideband_secrets') if one in sys.modules])\n"
        "anyio.run(main)"
    )
    command = [sys.executable, "-c", code, str(home)]
    ran = await anyio.to_thread.run_sync(lambda: subprocess.run(command, capture_output=True, text=True, check=True))
    assert ran.stdout.strip() == "[]"


async def test_vault_is_read_completely(start, own_vault, monkeypatch):
    monkeypatch.setenv("VAULT_TOKEN", "root")
    for number in range(40):
        own_vault.put(f"name-{number}", value=f"value-number-{number}-of-the-vault")
    vault = {"address": own_vault.address}
    async with start(backend="memory", sources=("vault",), vault=vault) as host:
        await assert_knows(host, *(f"value-number-{number}-of-the-vault" for number in range(40)))


async def test_vault_whose_names_cannot_be_listed_is_closed(start, vault, monkeypatch):
    monkeypatch.setenv("VAULT_TOKEN", vault.token()["client_token"])
    config = {"backend": "memory", "sources": ("vault",), "vault": {"address": vault.address}}
    async with start(policy={"require_open_secrets": True}, **config) as host:
        with pytest.raises(SecretsClosed):
            await host.op("mail.send", {"content": "hello"})


async def test_unreachable_vault_is_closed(start, monkeypatch):
    monkeypatch.setenv("VAULT_TOKEN", "root")
    config = {"backend": "memory", "sources": ("vault",), "vault": {"address": "http://127.0.0.1:9"}}
    async with start(policy={"require_open_secrets": True}, **config) as host:
        with pytest.raises(SecretsClosed):
            await host.op("mail.send", {"content": "hello"})


_PROMPTS = """
import os, sys, anyio
from pathlib import Path
from sideband import Host

async def main():
    settings = {"plugins": {"secrets": {"backend": "encrypted", "prompt": True}}}
    async with Host(home=Path(sys.argv[1]), settings=settings) as host:
        print(*host.broker.sources.closed.values(), flush=True)

anyio.run(main)
"""


async def test_start_on_a_terminal_does_not_prompt_for_the_passphrase(start, home, monkeypatch):
    monkeypatch.setitem(_sealing._SCRYPT, "n", 2**17)  # as in the other process
    monkeypatch.setenv("SIDEBAND_SECRETS_PASSPHRASE", "correct horse battery")
    async with start(backend="encrypted") as host:
        await store(host)
    monkeypatch.delenv("SIDEBAND_SECRETS_PASSPHRASE")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", _PROMPTS, str(home)]
    try:
        terminal = {"stdin": theirs, "stderr": theirs, "start_new_session": True}
        output = await anyio.to_thread.run_sync(
            lambda: subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **terminal)
        )
        shown = select.select([ours], [], [], 0)[0]
    finally:
        os.close(ours)
        os.close(theirs)
    assert output.stdout.strip() == "the store needs a passphrase"
    assert not shown


async def test_no_digest_of_a_value_is_written(start, home):
    params = {"name": "token", "value": VALUE, "origins": [HOME], "headers": {}}
    async with start(backend="encrypted") as host:
        await host.op("secrets.set", params, key="once")
        await host.op("secrets.rotate", {"name": "token", "value": VALUE}, key="again")
    async with start(backend="encrypted") as host:
        with pytest.raises(EgressRefused):
            await host.op("mail.send", {"content": VALUE})
    written = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    for given in (params, {"name": "token", "value": VALUE}):
        assert hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest().encode() not in written
    for name in ("md5", "sha1", "sha256", "sha512", "blake2b"):
        digest = hashlib.new(name, VALUE.encode())
        assert digest.digest() not in written
        assert digest.hexdigest().encode() not in written
        assert json.dumps(base64.b64encode(digest.digest()).decode()).encode() not in written
