"""``sideband secrets`` as people and scripts use it."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

CANARY = "canary-7f3a9c51"
ENCRYPTED = {"SIDEBAND_PLUGINS__SECRETS__BACKEND": '"encrypted"'}


@pytest.fixture
def secrets(sideband):
    """A command of ``sideband secrets`` on an encrypted store; its output as data if it has some."""

    def run(*words, code=0, stdin="", **environment):
        done = sideband("secrets", *words, "--json", stdin=stdin, **(ENCRYPTED | environment))
        assert done.returncode == code, done.stdout + done.stderr
        assert CANARY not in done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def reveal(sideband):
    def read(name="token", op="secrets.read", **environment):
        done = sideband("op", op, f"name={name}", "--json", **(ENCRYPTED | environment))
        return json.loads(done.stdout)["output"]

    return read


def item(secrets, **environment):
    (found,) = secrets("list", **environment)["items"]
    return found


def test_a_value_is_rotated_and_rolled_back(secrets, reveal):
    secrets("set", "token", "--origin", "https://a.test", "--header", "X-Key={value}", stdin=f"{CANARY}\n")
    told = secrets("rotate", "token", stdin="next\n")
    assert (told["version"], told["origins"]) == (2, ["https://a.test"])
    assert reveal() == "next"
    secrets("rollback", "token")
    assert reveal() == CANARY
    secrets("set", "token", "--rotate", stdin="third")
    assert (reveal(), item(secrets)["version"]) == ("third", 4)


def test_a_rotated_secret_keeps_its_binding(secrets):
    secrets("set", "token", stdin=CANARY)
    error = secrets("set", "token", "--rotate", "--origin", "https://evil.test", stdin="next", code=2)
    assert "keeps its origins" in error["error"]["message"]


def test_files_and_bytes_are_stored_as_they_are(secrets, reveal, tmp_path):
    file = tmp_path / "value"
    file.write_bytes(b"\x00\xff\xfe\n")
    secrets("set", "token", "--file", file)
    assert item(secrets)["kind"] == "binary"
    assert reveal(op="secrets.read_binary") == {"__bytes__": "AP/+Cg=="}
    file.write_text("text\n")
    secrets("rotate", "token", "--file", file)
    assert reveal() == "text"
    secrets("set", "token", "--file", file, "--binary")
    assert reveal(op="secrets.read_binary") == {"__bytes__": "dGV4dAo="}


def test_a_file_that_is_not_there_is_told(secrets, tmp_path):
    assert "can't be read" in secrets("set", "token", "--file", tmp_path / "none", code=2)["error"]["message"]


def test_a_variable_is_imported_and_no_other_is_looked_at(secrets, reveal):
    secrets("import", "token", "--from-env", "SOME_TOKEN", "--origin", "https://a.test", SOME_TOKEN=CANARY)
    assert reveal() == CANARY
    assert item(secrets)["origins"] == ["https://a.test"]
    assert "not set" in secrets("import", "other", "--from-env", "NO_TOKEN", code=2)["error"]["message"]


def test_a_header_needs_a_form(secrets):
    assert "is no header" in secrets("set", "token", "--header", "X-Key", stdin=CANARY, code=2)["error"]["message"]


def test_a_store_gets_a_new_key_and_a_passphrase(secrets, reveal, tmp_path):
    secrets("set", "token", stdin=CANARY)
    key = tmp_path / "home" / "secrets" / "key"
    before = key.read_bytes()
    assert secrets("rekey", "file") == {"opened_by": "file", "left": None}
    assert key.read_bytes() != before
    secrets("rekey", "passphrase", stdin="correct horse battery\n")
    assert not key.exists()
    assert secrets("list", code=1)["error"]["code"] == "secrets.key"
    assert reveal(SIDEBAND_SECRETS_PASSPHRASE="correct horse battery") == CANARY
    assert secrets("list", code=1, SIDEBAND_SECRETS_PASSPHRASE="another one")["error"]["code"] == "secrets.wrong_key"


def test_a_list_for_people_shows_age_place_and_the_value_before(sideband, secrets):
    secrets("set", "token", stdin=CANARY)
    secrets("rotate", "token", stdin="next")
    shown = sideband("secrets", "list", **ENCRYPTED).stdout
    assert "just now" in shown
    assert "encrypted (the value before until 2" in shown


def test_a_source_that_is_down_is_named_beside_what_there_is(sideband, secrets):
    secrets("set", "token", stdin=CANARY)
    done = sideband(
        "secrets", "list", "--set", 'plugins.secrets.sources=["vault"]',
        "--set", 'plugins.secrets.vault.address="http://127.0.0.1:9"', VAULT_TOKEN="x", **ENCRYPTED,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "token" in done.stdout
    assert "http://127.0.0.1:9" in done.stderr


@pytest.fixture
def at_terminal(tmp_path):
    """A command with a person, who answers each question."""

    def run(*words, answers):
        terminal, inside = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SIDEBAND_HOME": str(tmp_path / "home")}
        command = [sys.executable, "-m", "sideband", "secrets", *words]
        with subprocess.Popen(
            command, stdin=inside, stdout=inside, stderr=inside, env=environment | ENCRYPTED, start_new_session=True
        ) as process:
            os.close(inside)
            shown, left = b"", list(answers)
            with suppress(OSError):  # nobody is at its other end any more
                while part := os.read(terminal, 4096):
                    shown += part
                    if left and shown.endswith(b": "):
                        os.write(terminal, left.pop(0).encode() + b"\n")
        os.close(terminal)
        assert not left
        return process.returncode, shown.decode()

    return run


def test_a_new_passphrase_is_asked_for_twice(secrets, at_terminal, reveal):
    secrets("set", "token", stdin=CANARY)
    code, shown = at_terminal("rekey", "passphrase", answers=["correct horse battery", "correct horse"])
    assert (code, "they differ" in shown) == (2, True)
    assert reveal() == CANARY
    code, shown = at_terminal("rekey", "passphrase", answers=["correct horse battery"] * 2)
    assert code == 0
    assert "set SIDEBAND_SECRETS_PASSPHRASE to the new one" in shown
    assert "horse" not in shown
    assert reveal(SIDEBAND_SECRETS_PASSPHRASE="correct horse battery") == CANARY
