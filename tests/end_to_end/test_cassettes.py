"""`sideband record` and `sideband replay`."""

import json

import pytest

HASH = ("op", "crypto.hash", "algorithm=sha256")


@pytest.fixture
def recorded(sideband, tmp_path):
    done = sideband("record", "one.json", *HASH, "data=hello")
    assert done.returncode == 0, done.stderr
    assert "one.json has 1 effect" in done.stderr
    return tmp_path / "one.json"


def test_replay_prints_the_same(sideband, recorded):
    done = sideband("replay", "one.json", *HASH, "data=hello", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["output"]["__bytes__"].startswith("LPJNul")


def test_difference_is_an_error_with_exit_code_1(sideband, recorded):
    done = sideband("replay", "one.json", *HASH, "data=other", "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (1, "cassette.divergence")
    assert '+  "data": "b3RoZXI="' in error["details"]["diff"]


def test_missing_effects_are_added(sideband, recorded):
    before = recorded.read_text()
    done = sideband("record", "--missing", "one.json", *HASH, "data=other")
    assert done.returncode == 0, done.stderr
    assert recorded.read_text() != before
    assert sideband("replay", "one.json", *HASH, "data=other").returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("replay", "none.json", *HASH, "data=a"), 5, "none.json: the cassette does not exist"),
        (("replay", "one.json"), 2, "a command is missing"),
        (("record", "one.json", "chat"), 2, "`chat` cannot be recorded"),
    ],
)
def test_wrong_use_is_explained(sideband, words, code, problem):
    done = sideband(*words)
    assert (done.returncode, problem in done.stderr) == (code, True), done.stderr
