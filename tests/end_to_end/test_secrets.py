"""``sideband secrets`` from scripts and at a terminal."""

import json
import os
import pty
from contextlib import suppress

import pytest

CANARY = "canary-7f3a9c51"
ENCRYPTED = {"SIDEBAND_PLUGINS__SECRETS__BACKEND": '"encrypted"'}


@pytest.fixture
def secrets(sideband):
    """Return a function that runs ``sideband secrets`` on an encrypted store and returns its output as data."""

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


def test_value_is_rotated_and_rolled_back(secrets, reveal):
    secrets("set", "token", "--origin", "https://a.test", "--header", "X-Key={value}", stdin=f"{CANARY}\n")
    rotated = secrets("rotate", "token", stdin="next\n")
    assert (rotated["version"], rotated["origins"]) == (2, ["https://a.test"])
    assert reveal() == "next"
    secrets("rollback", "token")
    assert reveal() == CANARY
    secrets("set", "token", "--rotate", stdin="third")
    assert (reveal(), item(secrets)["version"]) == ("third", 4)


def test_rotation_with_new_origins_is_refused(secrets):
    secrets("set", "token", stdin=CANARY)
    error = secrets("set", "token", "--rotate", "--origin", "https://evil.test", stdin="next", code=2)
    assert "--rotate" in error["error"]["message"]


def test_values_from_files_are_stored_as_text_or_bytes(secrets, reveal, tmp_path):
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


def test_missing_value_file_is_a_usage_error(secrets, tmp_path):
    assert "cannot read" in secrets("set", "token", "--file", tmp_path / "missing", code=2)["error"]["message"]


def test_environment_variable_is_imported_and_a_missing_one_is_an_error(secrets, reveal):
    secrets("import", "token", "--from-env", "SOME_TOKEN", "--origin", "https://a.test", SOME_TOKEN=CANARY)
    assert reveal() == CANARY
    assert item(secrets)["origins"] == ["https://a.test"]
    assert "not set" in secrets("import", "other", "--from-env", "NO_TOKEN", code=2)["error"]["message"]


def test_header_without_a_form_is_a_usage_error(secrets):
    assert "`X-Key`" in secrets("set", "token", "--header", "X-Key", stdin=CANARY, code=2)["error"]["message"]


def test_rekey_changes_the_key_file_or_the_passphrase(secrets, reveal, tmp_path):
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


def test_list_shows_age_source_and_previous_value(sideband, secrets):
    secrets("set", "token", stdin=CANARY)
    secrets("rotate", "token", stdin="next")
    shown = sideband("secrets", "list", **ENCRYPTED).stdout
    assert "just now" in shown
    assert "encrypted (previous value until 2" in shown


def test_unreachable_source_is_reported_and_the_others_are_listed(sideband, secrets):
    secrets("set", "token", stdin=CANARY)
    done = sideband(
        "secrets", "list", "--set", 'plugins.secrets.sources=["vault"]',
        "--set", 'plugins.secrets.vault.address="http://127.0.0.1:9"', VAULT_TOKEN="x", **ENCRYPTED,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "token" in done.stdout
    assert "skipped vault: " in done.stderr
    assert "http://127.0.0.1:9" in done.stderr


@pytest.fixture
def at_terminal(tmp_path, command_server):
    """Return a function that runs a command at a terminal and answers each question."""

    def run(*words, answers):
        terminal, inside = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SIDEBAND_HOME": str(tmp_path / "home")}
        process = command_server.start(
            ["secrets", *words],
            streams=[inside] * 3,
            folder=tmp_path,
            environment=environment | ENCRYPTED,
            terminal=True,
        )
        os.close(inside)
        shown, left = b"", list(answers)
        with suppress(OSError):  # the other end is closed
            while part := os.read(terminal, 4096):
                shown += part
                if left and shown.endswith(b": "):
                    os.write(terminal, left.pop(0).encode() + b"\n")
        os.close(terminal)
        assert not left
        return process.wait(), shown.decode()

    return run


def test_new_passphrase_is_requested_twice(secrets, at_terminal, reveal):
    secrets("set", "token", stdin=CANARY)
    code, shown = at_terminal("rekey", "passphrase", answers=["correct horse battery", "correct horse"])
    assert (code, "passphrases differ" in shown) == (2, True)
    assert reveal() == CANARY
    code, shown = at_terminal("rekey", "passphrase", answers=["correct horse battery"] * 2)
    assert code == 0
    assert "set SIDEBAND_SECRETS_PASSPHRASE" in shown
    assert "horse" not in shown
    assert reveal(SIDEBAND_SECRETS_PASSPHRASE="correct horse battery") == CANARY
