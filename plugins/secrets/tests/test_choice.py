import gc
import json
import os
import subprocess
import sys

import keyring.backends.fail
import keyring.backends.null
import pytest
import secretstorage
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError
from sideband_secrets import SecretsLocked, SecretsUnavailable

pytestmark = pytest.mark.anyio


class Readable(KeyringBackend):
    """A third-party backend that stores values unencrypted."""

    __module__ = "keyrings.alt.file"
    priority = 0.5

    def get_password(self, *_):
        return None

    def set_password(self, *_):
        raise AssertionError("the secret would be stored unencrypted")


class Broken(Readable):
    __module__ = "keyring.backends.SecretService"

    def get_password(self, *_):
        raise KeyringError("no answer")


def store(host):
    return host.op("secrets.set", {"name": "token", "value": "s3cr3t-value"})


async def backend_of(host):
    return (await host.op("secrets.list", {}))["backend"]


UNSAFE = [keyring.backends.null.Keyring, keyring.backends.fail.Keyring, Readable, Broken]


@pytest.mark.parametrize("unsafe", UNSAFE)
async def test_encrypted_file_is_used_without_a_supported_keyring(open_host, use_keyring, home, unsafe):
    use_keyring(unsafe())
    async with open_host() as host:
        await store(host)
        assert await backend_of(host) == "encrypted"
    assert (home / "secrets" / "store.json").exists()


@pytest.mark.parametrize("unsafe", UNSAFE)
async def test_unsupported_keyring_is_an_error_if_configured(open_host, use_keyring, home, unsafe):
    use_keyring(unsafe())
    async with open_host(backend="keyring") as host:
        with pytest.raises(SecretsUnavailable) as caught:
            await store(host)
    assert caught.value.code == "secrets.unavailable"
    assert not (home / "secrets").exists()


async def test_supported_keyring_is_used_instead_of_files(open_host, real_keyring, home):
    async with open_host() as host:
        await store(host)
        assert await backend_of(host) == "keyring"
    assert {file.name for file in (home / "secrets").iterdir()} == {"in-keyring", "lock"}


async def test_missing_keyring_is_an_error_if_secrets_were_stored_in_it(open_host, real_keyring, use_keyring):
    async with open_host() as host:
        await store(host)
    use_keyring(keyring.backends.fail.Keyring())
    async with open_host() as host:
        with pytest.raises(SecretsUnavailable):
            await host.op("secrets.read", {"name": "token"})


async def test_encrypted_file_stays_in_use_when_a_keyring_appears(open_host, use_keyring, real_keyring):
    use_keyring(keyring.backends.fail.Keyring())
    async with open_host() as host:
        await store(host)
    use_keyring(real_keyring)
    async with open_host() as host:
        assert await backend_of(host) == "encrypted"
        assert await host.op("secrets.read", {"name": "token"}) == "s3cr3t-value"


async def test_homes_do_not_share_keyring_entries(open_host, real_keyring, home, tmp_path):
    async with open_host(backend="keyring") as host:
        await store(host)
    home.rename(tmp_path / "elsewhere")
    async with open_host(backend="keyring", service="another") as host:
        assert (await host.op("secrets.list", {}))["items"] == []


# the package keyring does not close its connection to a locked collection
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
async def test_locked_keyring_is_a_retryable_error(open_host, lockable_keyring):
    async with open_host(backend="keyring") as host:
        await store(host)
        connection = secretstorage.dbus_init()
        try:
            collection = secretstorage.get_default_collection(connection)
            collection.lock()
            with pytest.raises(SecretsLocked) as caught:
                await host.op("secrets.read", {"name": "token"})
            assert caught.value.retryable
        finally:
            connection.close()
    del caught
    gc.collect()


_FIND = """
import json
from sideband_secrets._keyring import find_keyring
found = find_keyring(only_known=True)
print(json.dumps(type(found).__module__))
"""


def test_keyring_of_a_desktop_session_is_detected(secret_service):
    environment = secret_service | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    found = subprocess.run(
        [sys.executable, "-c", _FIND], env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    assert json.loads(found.stdout) == "keyring.backends.SecretService"
