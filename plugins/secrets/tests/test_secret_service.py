"""A real Secret Service that hangs or crashes."""

import gc
import os
import signal
import sys
from contextlib import closing

import anyio
import pytest
import secretstorage
from jeepney import DBusAddress, new_method_call
from sideband_secrets import SecretsError

pytestmark = [
    pytest.mark.anyio,
    # the package keyring does not close its connections on errors
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

LARGE = bytes(range(256)) * 256
SERVICE = "Geheimnisse für Ämter 日本"


@pytest.fixture(autouse=True)
def collect_garbage():
    yield
    gc.collect()


def pid_of_the_service():
    bus = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
    message = new_method_call(bus, "GetConnectionUnixProcessID", "s", ("org.freedesktop.secrets",))
    with closing(secretstorage.dbus_init()) as connection:
        return connection.send_and_get_reply(message).body[0]


@pytest.fixture
def open_keyring(open_host):
    return lambda: open_host(backend="keyring", service=SERVICE)


def store(host, value="s3cr3t-value", name="token"):
    return host.op("secrets.set", {"name": name, "value": value})


def read(host, name="token"):
    return host.op("secrets.read_binary", {"name": name})


async def test_wait_for_a_hanging_service_can_be_cancelled(open_keyring, lockable_keyring):
    async with open_keyring() as host:
        await store(host)
        service = pid_of_the_service()
        os.kill(service, signal.SIGSTOP)
        try:
            for _ in range(6):  # more than the threads of the backend
                with anyio.move_on_after(0.05) as scope:
                    await read(host)
                assert scope.cancelled_caught
        finally:
            os.kill(service, signal.SIGCONT)
        assert await read(host) == b"s3cr3t-value"


_ABANDONS = """
import sys
from pathlib import Path
import anyio
import sideband_secrets.plugin, sideband_store_sqlite.plugin
from sideband import Host, Plugin

async def main():
    store = Plugin("store", "sqlite", sideband_store_sqlite.plugin)
    settings = {"plugins": {"secrets": {"backend": "keyring"}}}
    plugins = [Plugin("op", "secrets", sideband_secrets.plugin), store]
    async with Host(home=Path(sys.argv[1]), settings=settings, plugins=plugins, autoload=False) as host:
        with anyio.move_on_after(0.1):
            await host.op("secrets.list", {})
    print("abandoned", flush=True)

anyio.run(main)
"""


async def test_hanging_service_does_not_keep_the_process_alive(separate_secret_service, lockable_keyring, home):
    lockable_keyring.get_password("nothing", "nothing")
    environment = separate_secret_service | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    service = pid_of_the_service()
    os.kill(service, signal.SIGSTOP)
    try:
        with anyio.fail_after(60):
            done = await anyio.run_process([sys.executable, "-c", _ABANDONS, str(home)], env=environment)
    finally:
        os.kill(service, signal.SIGCONT)
    assert done.stdout == b"abandoned\n"


async def test_crash_of_the_service_is_an_error(open_keyring, lockable_keyring):
    async with open_keyring() as host:
        await store(host)
        os.kill(pid_of_the_service(), signal.SIGKILL)
        with pytest.raises(SecretsError) as caught:
            await store(host, "another-value")
        assert caught.value.code in ("secrets.unavailable", "secrets.locked")
        assert "another-value" not in str(caught.value.as_dict())
        assert caught.value.hint


async def test_large_values_and_unicode_service_names_are_supported(open_keyring, real_keyring):
    async with open_keyring() as host:
        await store(host, LARGE, "large")
        await host.op("secrets.rotate", {"name": "large", "value": LARGE[::-1]})
    async with open_keyring() as host:
        assert await read(host, "large") == LARGE[::-1]
        assert await host.op("secrets.read_binary", {"name": "large", "previous": True}) == LARGE
        await host.op("secrets.delete", {"name": "large"})
