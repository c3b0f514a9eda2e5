from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve
from sideband.ops import OpDenied
from sideband_secrets import Previous, SecretMissing, SecretUnrotated, StoredSecret
from sideband_secrets._encrypted import EncryptedBackend
from sideband_secrets._keys import Keys

pytestmark = pytest.mark.anyio

ORIGIN = "https://api.example.org"
LATER = "2999-01-01T00:00:00Z"
OLD, NEW = "the-old-value", "the-new-value"


@pytest.fixture(params=["memory", "encrypted", "keyring"])
def config(request):
    if request.param == "keyring":
        request.getfixturevalue("real_keyring")
    return {"backend": request.param}


@pytest.fixture
async def host(open_host, config):
    async with open_host(**config) as host:
        yield host


async def rotated(host):
    await host.op("secrets.set", {"name": "token", "value": OLD, "origins": [ORIGIN], "headers": {"X": "k={value}"}})
    return await host.op("secrets.rotate", {"name": "token", "value": NEW})


def read(host, **more):
    return host.op("secrets.read", {"name": "token", **more})


async def test_rotate_replaces_the_value_and_keeps_origins_and_headers(host):
    summary = await rotated(host)
    assert await read(host) == NEW
    assert (summary["version"], summary["origins"]) == (2, [ORIGIN])
    sent = await host.op("probe.send", {"handle": "token", "audience": ORIGIN})
    assert sent["headers"] == f"1:{len('k=' + NEW)}"


async def test_previous_value_can_be_read_and_restored(host):
    await rotated(host)
    assert await read(host, previous=True) == OLD
    summary = await host.op("secrets.rollback", {"name": "token"})
    assert await read(host) == OLD
    assert (summary["version"], summary["previous_until"]) == (3, None)
    with pytest.raises(SecretUnrotated):
        await host.op("secrets.rollback", {"name": "token"})


async def test_list_contains_the_expiry_of_the_previous_value(host):
    await rotated(host)
    (item,) = (await host.op("secrets.list", {}))["items"]
    kept = datetime.fromisoformat(item["previous_until"]) - datetime.fromisoformat(item["updated"])
    assert timedelta(days=7) <= kept <= timedelta(days=7, seconds=1)
    assert item["version"] == 2


async def test_rotation_can_switch_between_text_and_bytes(host):
    value = b"\x00\xff\x80\x81"
    await host.op("secrets.set", {"name": "token", "value": OLD})
    await host.op("secrets.rotate", {"name": "token", "value": value})
    assert await host.op("secrets.read_binary", {"name": "token"}) == value
    assert await read(host, previous=True) == OLD
    await host.op("secrets.rotate", {"name": "token", "value": NEW})
    assert await host.op("secrets.read_binary", {"name": "token", "previous": True}) == value


async def test_set_discards_the_previous_value_and_increments_the_version(host):
    await rotated(host)
    assert (await host.op("secrets.set", {"name": "token", "value": "a-third-value"}))["version"] == 3
    with pytest.raises(SecretUnrotated):
        await read(host, previous=True)


async def test_current_and_previous_values_are_redacted(open_host):
    async with open_host(backend="encrypted") as host:
        await rotated(host)
    async with open_host(backend="encrypted") as host:
        await host.op("probe.send", {"handle": "token", "audience": ORIGIN})
        assert host.redactor.text(f"{OLD} {NEW}") == "[redacted:token] [redacted:token]"


class TestInMemory:
    @pytest.fixture
    def config(self):
        return {"backend": "memory"}

    async def test_rotating_an_unknown_secret_is_an_error(self, host):
        for op, more in (("secrets.rotate", {"value": NEW}), ("secrets.rollback", {})):
            with pytest.raises(SecretMissing):
                await host.op(op, {"name": "token"} | more)

    async def test_secret_without_rotation_has_no_previous_value(self, host):
        await host.op("secrets.set", {"name": "token", "value": OLD})
        with pytest.raises(SecretUnrotated) as caught:
            await read(host, previous=True)
        assert caught.value.code == "secrets.unrotated"

    async def test_rotate_needs_a_write_grant(self, host):
        await rotated(host)
        for op, more in (("secrets.rotate", {"value": NEW}), ("secrets.rollback", {})):
            for grants in (["secrets"], ["secrets:name=token,mode=reveal"], ["secrets:name=other,mode=write"]):
                with pytest.raises(OpDenied):
                    await host.op(op, {"name": "token"} | more, grants=grants)
        assert await read(host) == NEW

    async def test_zero_grace_keeps_no_previous_value(self, open_host):
        async with open_host(backend="memory", grace=0) as host:
            assert (await rotated(host))["previous_until"] is None
            with pytest.raises(SecretUnrotated):
                await host.op("secrets.rollback", {"name": "token"})


class TestExpired:
    @pytest.fixture
    def keep_expired(self, monkeypatch):
        """Keep expired values in the store, as if it was not written since they expired."""
        monkeypatch.setattr(StoredSecret, "current", lambda self: self)

    @pytest.fixture
    def backend(self, home):
        home.mkdir(mode=0o700)
        folder = home / "secrets"
        return EncryptedBackend(folder=folder, keys=Keys(file=folder / "key"))

    @pytest.fixture
    def stored(self):
        previous = Previous(OLD.encode(), True, "2026-01-01T00:00:00Z")
        return StoredSecret("token", NEW.encode(), True, (ORIGIN,), (), "2026-01-01T00:00:00Z", 2, previous)

    @pytest.mark.usefixtures("keep_expired")
    async def test_expired_value_is_unavailable_but_still_redacted(self, open_host, backend, stored):
        backend.change("token", lambda _: stored)
        async with open_host(backend="encrypted") as host:
            with pytest.raises(SecretUnrotated):
                await read(host, previous=True)
            with pytest.raises(SecretUnrotated):
                await host.op("secrets.rollback", {"name": "token"})
            assert host.redactor.text(OLD) == "[redacted:token]"

    async def test_next_change_removes_the_expired_value(self, backend, stored):
        backend.change("token", lambda _: evolve(stored, previous=evolve(stored.previous, until=LATER)))
        assert backend.read("token").previous.value == OLD.encode()
        backend.change("token", lambda _: stored)
        assert backend.read("token") == evolve(stored, previous=None)


async def test_expiry_is_in_utc():
    stored = StoredSecret("token", OLD.encode(), True).rotated(NEW.encode(), text=True, grace=60.0)
    assert datetime.fromisoformat(stored.previous.until) > datetime.now(UTC) + timedelta(seconds=50)
    assert stored.previous.until.endswith("Z")
