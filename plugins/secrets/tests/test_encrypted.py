import base64
import hashlib
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
from contextlib import contextmanager

import pytest
from sideband_secrets import (
    SecretsDamaged,
    SecretsExposed,
    SecretsKeyMissing,
    SecretsStorage,
    SecretsWrongKey,
    StoredSecret,
)
from sideband_secrets._encrypted import EncryptedBackend
from sideband_secrets._keys import Keys
from sideband_secrets._sealing import Sealed

VALUE = b"s3cr3t-value"


def secret(name="token", value=VALUE):
    return StoredSecret(name, value, True, ("https://api.example.org",), (("X", "{value}"),), "2026-01-01T00:00:00Z", 1)


def put(store, stored):
    store.change(stored.name, lambda _before: stored)


def delete(store, name):
    store.change(name, lambda _before: None)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "secrets"


@pytest.fixture
def open_store(folder):
    def open_store(passphrase=None, **more):
        keys = Keys(file=folder / "key", passphrase=lambda _new: passphrase, **more)
        return EncryptedBackend(folder=folder, keys=keys)

    return open_store


@pytest.fixture
def store(open_store):
    store = open_store()
    put(store, secret())
    return store


def test_new_reader_finds_stored_secrets(store, open_store):
    assert open_store().read("token") == secret()
    assert [one.name for one in open_store().summaries()] == ["token"]


def test_files_are_private_and_contain_no_plain_text(store, folder):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        for part in (VALUE, b"token", b"example.org", base64.b64encode(VALUE)):
            assert part not in file.read_bytes()


def test_each_write_uses_a_new_nonce(store):
    before = store.path.read_bytes()
    put(store, secret("other"))
    delete(store, "other")
    assert json.loads(store.path.read_bytes())["nonce"] != json.loads(before)["nonce"]


def test_change_without_effect_writes_nothing(store):
    before = store.path.read_bytes()
    delete(store, "missing")
    put(store, secret())
    assert store.path.read_bytes() == before


def test_deleting_an_unknown_secret_creates_neither_store_nor_key(folder, open_store):
    delete(open_store(), "missing")
    assert [file.name for file in folder.iterdir()] == ["lock"]


def test_wrong_key_is_distinguished_from_damage(store, folder, open_store):
    (folder / "key").write_bytes(base64.b64encode(os.urandom(32)))
    with pytest.raises(SecretsWrongKey) as caught:
        open_store().read("token")
    assert caught.value.code == "secrets.wrong_key"


def test_missing_key_file_is_never_recreated(store, folder, open_store):
    (folder / "key").unlink()
    for use in (lambda: open_store().read("token"), lambda: put(open_store(), secret("other"))):
        with pytest.raises(SecretsKeyMissing):
            use()
    assert not (folder / "key").exists()


def test_invalid_key_file_is_damaged(store, folder, open_store):
    (folder / "key").write_text("short")
    with pytest.raises(SecretsDamaged, match="key"):
        open_store().read("token")


def test_any_modified_byte_is_detected(store, open_store):
    intact = store.path.read_bytes()
    for position in range(len(intact)):
        changed = intact[:position] + bytes([(intact[position] + 1) % 256]) + intact[position + 1 :]
        with pytest.raises(SecretsDamaged):
            Sealed.parse(store.path, changed)
    store.path.write_bytes(changed)
    with pytest.raises(SecretsDamaged):
        open_store().read("token")


def test_truncated_file_is_detected(store, open_store):
    intact = store.path.read_bytes()
    for length in range(len(intact)):
        with pytest.raises(SecretsDamaged):
            Sealed.parse(store.path, intact[:length])
    store.path.write_bytes(intact[:-1])
    with pytest.raises(SecretsDamaged):
        open_store().read("token")


def tamper(path, change):
    """Modify the file and update its checksum."""
    content = json.loads(path.read_bytes())
    del content["digest"]
    change(content)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    path.write_text(json.dumps(content | {"digest": hashlib.sha256(canonical).hexdigest()}))


def other_data(content):
    content["data"] = base64.b64encode(os.urandom(80)).decode()


def other_nonce(content):
    content["nonce"] = base64.b64encode(os.urandom(12)).decode()


def unknown_version(content):
    content["version"] = 2


def no_key(content):
    del content["key"]


@pytest.mark.parametrize("change", [other_data, other_nonce, unknown_version, no_key])
def test_tampering_with_a_valid_checksum_is_detected(store, open_store, change):
    tamper(store.path, change)
    with pytest.raises(SecretsDamaged):
        open_store().read("token")


def test_file_readable_by_others_is_rejected(store, folder, open_store):
    for file in (folder / "key", store.path):
        file.chmod(0o640)
        with pytest.raises(SecretsExposed) as caught:
            open_store().read("token")
        assert f"chmod 600 {file}" in caught.value.hint
        file.chmod(0o600)


def test_folder_writable_by_others_is_rejected(store, folder, open_store):
    folder.chmod(0o770)
    for use in (lambda: open_store().read("token"), lambda: put(open_store(), secret("other"))):
        with pytest.raises(SecretsExposed):
            use()


def test_key_file_that_is_a_link_or_pipe_is_rejected(store, folder, open_store, tmp_path):
    (folder / "key").rename(tmp_path / "key")
    (folder / "key").symlink_to(tmp_path / "key")
    with pytest.raises(SecretsStorage):
        open_store().read("token")
    (folder / "key").unlink()
    os.mkfifo(folder / "key", 0o600)
    with pytest.raises(SecretsExposed):
        open_store().read("token")


@contextmanager
def full_disk():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_full_disk_leaves_the_store_unchanged(store, folder, open_store):
    before = sorted(folder.iterdir())
    with full_disk(), pytest.raises(SecretsStorage):
        put(store, secret(value=b"another-value"))
    assert open_store().read("token") == secret()
    assert sorted(folder.iterdir()) == before


_WRITER = """
import sys
from pathlib import Path
import anyio, anyio.to_thread
from sideband_secrets import StoredSecret
from sideband_secrets._encrypted import EncryptedBackend
from sideband_secrets._keys import Keys
folder = Path(sys.argv[1])
def work():
    store = EncryptedBackend(folder=folder, keys=Keys(file=folder / "key"))
    for number in range(10):
        stored = StoredSecret(f"{sys.argv[2]}-{number}", b"value", True)
        store.change(stored.name, lambda _before: stored)
anyio.run(anyio.to_thread.run_sync, work)
"""


def test_processes_can_store_concurrently(folder, open_store):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", _WRITER, str(folder)]
    writers = [subprocess.Popen([*command, name], env=environment) for name in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(open_store().summaries()) == 20


@pytest.fixture(scope="module")
def store_with_passphrase(tmp_path_factory, cheap_scrypt):
    folder = tmp_path_factory.mktemp("sealed")
    keys = Keys(file=folder / "key", passphrase=lambda _new: "correct horse")
    put(EncryptedBackend(folder=folder, keys=keys), secret())
    return folder


@pytest.mark.usefixtures("store")
class TestPassphrase:
    @pytest.fixture
    def store(self, open_store, folder, store_with_passphrase):
        shutil.copytree(store_with_passphrase, folder)
        return open_store("correct horse")

    def test_passphrase_opens_the_store_without_a_key_file(self, folder, open_store):
        assert open_store("correct horse").read("token") == secret()
        assert not (folder / "key").exists()

    def test_wrong_passphrase_can_be_corrected(self, folder):
        given = iter(["incorrect horse", "correct horse"])
        keys = Keys(file=folder / "key", passphrase=lambda _new: next(given))
        other = EncryptedBackend(folder=folder, keys=keys)
        with pytest.raises(SecretsWrongKey, match="passphrase"):
            other.read("token")
        assert other.read("token") == secret()

    def test_missing_passphrase_error_hints_at_how_to_set_it(self, open_store):
        with pytest.raises(SecretsKeyMissing) as caught:
            open_store().read("token")
        assert "SIDEBAND_SECRETS_PASSPHRASE" in caught.value.hint

    def test_configuration_that_requires_a_key_file_is_enforced(self, open_store):
        with pytest.raises(SecretsKeyMissing, match="requires a file"):
            open_store("correct horse", source="file").read("token")

    def test_cost_of_key_derivation_is_limited(self, store, open_store):
        def costly(content):
            content["key"]["n"] = 2**30

        tamper(store.path, costly)
        with pytest.raises(SecretsDamaged):
            open_store("correct horse").read("token")


def test_configuration_that_requires_a_passphrase_creates_no_key_file(folder, open_store):
    with pytest.raises(SecretsKeyMissing):
        put(open_store(source="passphrase"), secret())
    assert not (folder / "key").exists()
    assert not (folder / "store.json").exists()
