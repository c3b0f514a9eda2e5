"""The keyring backend with a keyring in memory: invalid entries, and the repair of the index."""

import json

import pytest
from keyring.errors import PasswordDeleteError
from sideband_secrets import SecretsDamaged, StoredSecret
from sideband_secrets._keyring import KeyringBackend

SECRET = StoredSecret("token", b"s3cr3t-value", True, ("https://api.example.org",), (), "2026-01-01T00:00:00Z", 1)
VALID = {"value": "a", "text": True, "origins": [], "headers": {}, "updated": ""}
INVALID = {
    "no JSON": "no JSON",
    "a list": "[]",
    "no fields": "{}",
    "value that is a number": json.dumps(VALID | {"value": 7}),
    "value that is not base64": json.dumps(VALID | {"value": "%", "text": False}),
    "origins that are a number": json.dumps(VALID | {"origins": 7}),
    "origins that are text": json.dumps(VALID | {"origins": "https://a.test"}),
    "origin that is a number": json.dumps(VALID | {"origins": [7]}),
    "headers that are a list": json.dumps(VALID | {"headers": []}),
    "header that is a number": json.dumps(VALID | {"headers": {"X": 7}}),
    "previous value that is a number": json.dumps(VALID | {"previous": 7}),
}


class Keyring:
    """A keyring in memory."""

    def __init__(self):
        self.entries = {}

    def get_password(self, service, name):
        return self.entries.get((service, name))

    def set_password(self, service, name, value):
        self.entries[service, name] = value

    def delete_password(self, service, name):
        if self.entries.pop((service, name), None) is None:
            raise PasswordDeleteError(name)


@pytest.fixture
def keyring():
    return Keyring()


@pytest.fixture
def backend(keyring, tmp_path):
    backend = KeyringBackend(keyring, "test", tmp_path / "secrets")
    backend.change("token", lambda _before: SECRET)
    return backend


@pytest.mark.parametrize("entry", INVALID.values(), ids=INVALID)
def test_invalid_entry_is_damaged(keyring, backend, entry):
    assert backend.read("token") == SECRET
    keyring.set_password("test", "token", entry)
    with pytest.raises(SecretsDamaged, match="`token`"):
        backend.read("token")


@pytest.mark.parametrize("index", ["no JSON", "[]", '{"token": 7}', '{"token": {}}'])
def test_invalid_index_is_damaged(keyring, backend, index):
    keyring.set_password("test", ":index", index)
    with pytest.raises(SecretsDamaged, match="index"):
        backend.summaries()
    assert backend.read("token") == SECRET


def test_next_change_repairs_an_incomplete_index(keyring, backend):
    keyring.delete_password("test", ":index")
    assert backend.summaries() == ()
    assert backend.read("token") == SECRET
    backend.change("token", lambda before: before)
    assert [one.name for one in backend.summaries()] == ["token"]


def test_deleted_secret_is_removed_from_the_index(keyring, backend):
    backend.change("token", lambda _before: None)
    backend.change("token", lambda _before: None)
    assert backend.read("token") is None
    assert backend.summaries() == ()
