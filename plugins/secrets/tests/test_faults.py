"""The encrypted store during crashes, disk errors and attacks."""

import base64
import functools
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband_secrets import (
    SecretsDamaged,
    SecretsExposed,
    SecretsNewer,
    SecretsStorage,
    SecretsWrongKey,
    StoredSecret,
    _encrypted,
)
from sideband_secrets._encrypted import EncryptedBackend
from sideband_secrets._keys import Keys
from sideband_secrets._sealing import new_salt, passphrase_header

HERE = Path(__file__).parent


def secret(name="token", value=b"s3cr3t-value"):
    return StoredSecret(name, value, True)


def put(store, stored):
    store.change(stored.name, lambda _before: stored)


def open_store(folder, key_file=None):
    return EncryptedBackend(folder=folder, keys=Keys(file=key_file or folder / "key", source="file"))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "secrets"


@pytest.fixture
def store(folder):
    store = open_store(folder)
    put(store, secret())
    return store


def python_environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.fixture(scope="module")
def crash(tmp_path_factory):
    """Return a function that kills runs of an action before each step, and returns the reported results."""

    @functools.cache
    def crash(action):
        done = subprocess.run(
            [sys.executable, HERE / "store_crashes.py", tmp_path_factory.mktemp(action), action],
            env=python_environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        runs = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(runs) > 3
        return runs

    return crash


class TestCrashAtEachStep:
    def test_change_is_atomic(self, crash):
        runs = crash("change")
        assert {run["value"] for run in runs} == {"old-value", "new-value"}
        assert all(run["same"] for run in runs)

    def test_creation_of_the_store_is_atomic(self, crash):
        assert {run["value"] for run in crash("first")} <= {None, "new-value"}

    @pytest.mark.parametrize("action", ["rekey", "to-passphrase", "to-file", "passphrase"])
    def test_store_can_be_opened_after_an_interrupted_rekey(self, crash, action):
        assert {run["value"] for run in crash(action)} == {"old-value"}

    @pytest.mark.parametrize("action", ["first", "change", "rekey"])
    def test_next_change_removes_temporary_files(self, crash, action):
        for run in crash(action):
            assert run["files"] == ["key", "lock", "store.json"]


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("intact")
    store = open_store(folder)
    put(store, secret())
    return store, store.path.read_bytes()


class TestDamage:
    @settings(deadline=None, max_examples=100)
    @given(data=st.data())
    def test_any_flipped_byte_is_damage(self, intact, data):
        store, raw = intact
        position = data.draw(st.integers(0, len(raw) - 1))
        flipped = raw[position] ^ data.draw(st.integers(1, 255))
        store.path.write_bytes(raw[:position] + bytes([flipped]) + raw[position + 1 :])
        with pytest.raises(SecretsDamaged):
            store.read("token")

    @settings(deadline=None, max_examples=100)
    @given(
        raw=st.binary(max_size=200)
        | st.text('{}[]",:0123456789eE-+.nulltruefalsedigestdata', max_size=200).map(str.encode)
    )
    def test_arbitrary_content_is_damage(self, intact, raw):
        store, _ = intact
        store.path.write_bytes(raw)
        with pytest.raises(SecretsDamaged):
            store.read("token")

    @settings(deadline=None, max_examples=25)
    @given(key=st.binary(min_size=32, max_size=32))
    def test_any_other_key_is_wrong_key_and_not_damage(self, intact, tmp_path_factory, key):

        store, raw = intact
        store.path.write_bytes(raw)
        key_file = tmp_path_factory.getbasetemp() / "other-key"
        key_file.touch(mode=0o600)
        key_file.write_bytes(base64.b64encode(key))
        with pytest.raises(SecretsWrongKey):
            open_store(store.folder, key_file).read("token")

    @pytest.mark.parametrize("more", [b" ", b"\n", b"{}", b"\0"])
    def test_additional_bytes_are_damage(self, store, more):
        for raw in (store.path.read_bytes() + more, more + store.path.read_bytes()):
            store.path.write_bytes(raw)
            with pytest.raises(SecretsDamaged):
                store.read("token")

    def test_deep_nesting_is_damage(self, store):
        store.path.write_bytes(b"[" * 1_000_000)
        with pytest.raises(SecretsDamaged):
            store.read("token")

    def test_oversized_file_is_not_read(self, store, monkeypatch):
        monkeypatch.setattr(_encrypted, "_MAX_BYTES", store.path.stat().st_size)
        assert store.read("token") == secret()
        with store.path.open("ab") as file:
            file.write(b" ")
        with pytest.raises(SecretsStorage, match="exceeds"):
            store.read("token")

    def test_damaged_store_is_not_overwritten(self, store):
        store.path.write_bytes(b"damaged")
        with pytest.raises(SecretsDamaged):
            put(store, secret("other"))
        assert store.path.read_bytes() == b"damaged"


class TestOtherFiles:
    def test_store_or_lock_that_is_a_link_is_rejected(self, store, folder, tmp_path):
        for name in ("store.json", "lock"):
            (folder / name).rename(tmp_path / name)
            (folder / name).symlink_to(tmp_path / name)
            with pytest.raises(SecretsStorage):
                put(store, secret("other"))
            (folder / name).unlink()
            (tmp_path / name).rename(folder / name)
        put(store, secret("other"))

    def test_store_that_is_a_pipe_is_rejected_without_blocking(self, store, folder):
        store.path.unlink()
        os.mkfifo(store.path, 0o600)
        with pytest.raises(SecretsExposed):
            store.read("token")

    def test_folder_that_is_a_file_is_rejected(self, folder):
        folder.write_text("")
        with pytest.raises(SecretsExposed, match="not a folder"):
            open_store(folder).read("token")

    def test_store_that_is_a_folder_is_rejected(self, store):
        store.path.unlink()
        store.path.mkdir(mode=0o700)
        with pytest.raises((SecretsExposed, SecretsStorage)):
            store.read("token")

    def test_write_does_not_change_other_hard_links(self, store, tmp_path):
        before = store.path.read_bytes()
        (tmp_path / "other-name").hardlink_to(store.path)
        put(store, secret("other"))
        assert (tmp_path / "other-name").read_bytes() == before
        assert store.path.stat().st_nlink == 1

    def test_file_of_another_user_is_rejected(self, folder, tmp_path):
        foreign = tmp_path / "foreign"
        foreign.touch(mode=0o600)
        if os.geteuid() == 0:
            os.chown(foreign, 12345, 12345)
        else:
            foreign = Path("/etc/passwd")
        with pytest.raises(SecretsExposed, match="not a regular file"):
            put(open_store(folder, foreign), secret())

    def test_folder_of_another_user_is_rejected(self, folder):
        folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(folder, 12345, 12345)
        else:
            folder = Path("/")
        with pytest.raises(SecretsExposed, match="another user"):
            open_store(folder).read("token")

    def test_unrelated_files_are_not_removed(self, store, folder):
        names = [".store.json.backup", "store.json.sideband-new", ".other.x.sideband-new"]
        for name in names:
            (folder / name).write_text("mine")
        put(store, secret("other"))
        assert all((folder / name).exists() for name in names)


_FILL = """
import json, sys
from pathlib import Path
from sideband_secrets import SecretsStorage, StoredSecret
from sideband_secrets._encrypted import EncryptedBackend
from sideband_secrets._keys import Keys
folder = Path(sys.argv[1])
store = EncryptedBackend(folder=folder, keys=Keys(file=folder / "key", source="file"))
stored = 0
try:
    for number in range(100):
        secret = StoredSecret(f"token-{number}", b"x" * 20_000, True)
        store.change(secret.name, lambda _: secret)
        stored += 1
except SecretsStorage as error:
    message = error.message
files = sorted(file.name for file in folder.iterdir())
intact = all(store.read(f"token-{number}").value == b"x" * 20_000 for number in range(stored))
store.change("token-0", lambda _: None)
print(json.dumps({"stored": stored, "message": message, "files": files, "intact": intact}))
"""


def test_full_disk_keeps_stored_secrets(tmp_path):
    (tmp_path / "disk").mkdir()
    script = 'mount -t tmpfs -o size=256k,mode=700 tmpfs "$1" && exec "$2" -c "$3" "$1/secrets"'
    options = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-root-user"]
    done = subprocess.run(
        ["unshare", *options, "sh", "-c", script, "sh", tmp_path / "disk", sys.executable, _FILL],
        env=python_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert "No space left" in result["message"]
    assert result["files"] == ["key", "lock", "store.json"]
    assert result["intact"]
    assert result["stored"] > 1


def test_key_derivation_is_expensive_by_default():
    header = passphrase_header(new_salt())
    assert (header["kdf"], header["n"], header["r"], header["p"]) == ("scrypt", 2**17, 8, 1)


def test_newer_format_is_distinguished_from_damage(store):
    content = json.loads(store.path.read_bytes())
    del content["digest"]
    content["version"] = 2
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    store.path.write_text(json.dumps(content | {"digest": hashlib.sha256(canonical).hexdigest()}))
    with pytest.raises(SecretsNewer) as caught:
        store.read("token")
    assert caught.value.code == "secrets.newer"
    assert "later version" in caught.value.hint
