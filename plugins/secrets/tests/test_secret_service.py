"""A real Secret Service that stops, dies, and holds what somebody else wrote."""

import gc
import os
import signal
import sys
from contextlib import closing

import anyio
import pytest
import secretstorage
from jeepney import DBusAddress, new_method_call
from sideband_secrets import SecretsDamaged, SecretsError

pytestmark = [
    pytest.mark.anyio,
    # keyring itself leaves its connections open where something fails
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

LARGE = bytes(range(256)) * 256
SERVICE = "Geheimnisse für Ämter 日本"


@pytest.fixture(autouse=True)
def collect_what_is_left():
    yield
    gc.collect()


def process_of_the_service():
    bus = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
    question = new_method_call(bus, "GetConnectionUnixProcessID", "s", ("org.freedesktop.secrets",))
    with closing(secretstorage.dbus_init()) as connection:
        return connection.send_and_get_reply(question).body[0]


@pytest.fixture
def open_keyring(open_host):
    return lambda: open_host(backend="keyring", service=SERVICE)


def store(host, value="s3cr3t-value", name="token"):
    return host.op("secrets.set", {"name": name, "value": value})


def read(host, name="token"):
    return host.op("secrets.read_binary", {"name": name})


async def test_a_service_that_stops_can_be_given_up_and_is_used_again_when_it_goes_on(open_keyring, lockable_keyring):
    async with open_keyring() as host:
        await store(host)
        service = process_of_the_service()
        os.kill(service, signal.SIGSTOP)
        try:
            for _ in range(6):  # more than there are threads for it
                with anyio.move_on_after(0.05) as scope:
                    await read(host)
                assert scope.cancelled_caught
        finally:
            os.kill(service, signal.SIGCONT)
        assert await read(host) == b"s3cr3t-value"


_GIVES_UP = """
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
    print("given up", flush=True)

anyio.run(main)
"""


async def test_a_program_that_has_given_up_ends(secret_service_of_its_own, lockable_keyring, home):
    lockable_keyring.get_password("nothing", "nothing")
    environment = secret_service_of_its_own | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    service = process_of_the_service()
    os.kill(service, signal.SIGSTOP)
    try:
        with anyio.fail_after(60):
            done = await anyio.run_process([sys.executable, "-c", _GIVES_UP, str(home)], env=environment)
    finally:
        os.kill(service, signal.SIGCONT)
    assert done.stdout == b"given up\n"


async def test_a_service_that_dies_is_an_error_and_loses_nothing_that_was_stored(open_keyring, lockable_keyring):
    async with open_keyring() as host:
        await store(host)
        os.kill(process_of_the_service(), signal.SIGKILL)
        with pytest.raises(SecretsError) as caught:
            await store(host, "another-value")
        assert caught.value.code in ("secrets.unavailable", "secrets.locked")
        assert "another-value" not in str(caught.value.as_dict())
        assert caught.value.hint


async def test_large_bytes_and_names_in_other_scripts_are_kept(open_keyring, real_keyring):
    async with open_keyring() as host:
        await store(host, LARGE, "large")
        await host.op("secrets.rotate", {"name": "large", "value": LARGE[::-1]})
    async with open_keyring() as host:
        assert await read(host, "large") == LARGE[::-1]
        assert await host.op("secrets.read_binary", {"name": "large", "previous": True}) == LARGE
        await host.op("secrets.delete", {"name": "large"})


@pytest.mark.parametrize(
    "entry",
    ["no JSON", "[]", "{}", '{"value": 7, "text": true, "origins": [], "headers": {}, "updated": ""}',
     '{"value": "%", "text": false, "origins": [], "headers": {}, "updated": ""}',
     '{"value": "a", "text": true, "origins": 7, "headers": {}, "updated": ""}',
     '{"value": "a", "text": true, "origins": [], "headers": [], "updated": ""}',
     '{"value": "a", "text": true, "origins": "https://a.test", "headers": {}, "updated": ""}',
     '{"value": "a", "text": true, "origins": [7], "headers": {}, "updated": ""}',
     '{"value": "a", "text": true, "origins": [], "headers": {"X": 7}, "updated": ""}',
     '{"value": "a", "text": true, "origins": [], "headers": {}, "updated": "", "previous": 7}'],
)  # fmt: skip
async def test_an_entry_that_somebody_else_wrote_is_damaged(open_keyring, real_keyring, entry):
    async with open_keyring() as host:
        await store(host)
        real_keyring.set_password(SERVICE, "token", entry)
        with pytest.raises(SecretsDamaged):
            await read(host)
        real_keyring.set_password(SERVICE, "token", "{}")
        real_keyring.delete_password(SERVICE, "token")


@pytest.mark.parametrize("index", ["no JSON", "[]", '{"token": 7}', '{"token": {}}'])
async def test_an_index_that_somebody_else_wrote_is_damaged(open_keyring, real_keyring, index):
    async with open_keyring() as host:
        await store(host)
        real_keyring.set_password(SERVICE, ":index", index)
        with pytest.raises(SecretsDamaged):
            await host.op("secrets.list", {})
        real_keyring.delete_password(SERVICE, ":index")
        assert await read(host) == b"s3cr3t-value"


async def test_a_secret_that_a_crash_kept_out_of_the_index_is_there_and_listed_after_the_next_change(
    open_keyring, real_keyring
):
    async with open_keyring() as host:
        await store(host)
        real_keyring.delete_password(SERVICE, ":index")
        assert (await host.op("secrets.list", {}))["items"] == []
        assert await read(host) == b"s3cr3t-value"
        await store(host, "s3cr3t-value")
        assert [one["name"] for one in (await host.op("secrets.list", {}))["items"]] == ["token"]
