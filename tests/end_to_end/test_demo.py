"""`sideband demo` as a user runs it."""

import json
import os
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="module")
def demo(tmp_path_factory, command_server):
    """The JSON output of one demo, its home, and a function that runs commands in the same home."""
    folder = tmp_path_factory.mktemp("demo")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "SIDEBAND_HOME": str(folder / "home")}

    def run(*words):
        return command_server.run(list(words), stdin="", folder=folder, environment=environment)

    done = run("demo", "--json")
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(data=json.loads(done.stdout), home=folder / "home", run=run)


def test_demo_shows_results_effects_isolation_and_verification(sideband_process):
    done = sideband_process("demo")
    assert done.returncode == 0, done.stderr
    assert "fetching 6 pages" in done.stderr
    for part in ("Saturn   274", "sql.executemany", "secrets.read", "denied", "isolation", "ledger is intact"):
        assert part in done.stdout


def test_demo_as_json_contains_result_effects_and_verification(demo):
    assert [planet["name"] for planet in demo.data["output"]["planets"]][:3] == ["Mercury", "Venus", "Earth"]
    assert demo.data["output"]["refused"]["code"] == "op.denied"
    assert demo.data["audit"]["ok"] is True
    assert {effect["status"] for effect in demo.data["effects"]} == {"done", "denied"}
    assert all(effect["ms"] >= 0 for effect in demo.data["effects"])


def test_pages_are_fetched_concurrently(demo):
    ids = [effect["id"] for effect in demo.data["effects"] if effect["op"] == "http.get"][:6]
    data = json.loads(demo.run("audit", "query", "--op", "http.get", "--json").stdout)
    lines = [entry for effect in data if effect["effect"] in ids for entry in effect["entries"]]
    lines.sort(key=lambda line: line["seq"])
    # All intents precede the first outcome: six requests were in progress at the same time.
    assert [line["kind"] for line in lines[:6]] == ["intent"] * 6


def test_skill_of_the_demo_can_be_called_after_the_demo(demo):
    done = demo.run("call", "demo.harvest", "pages=3", "--json")
    assert len(json.loads(done.stdout)["output"]["planets"]) >= 3


def test_call_without_a_grant_exits_with_3(sideband):
    done = sideband("call", "demo.harvest", "--json")
    assert done.returncode == 3
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "grant.required"
    assert "--yes" in error["hint"]


def test_demo_leaves_no_token_in_its_files(demo):
    token = demo.run("op", "secrets.read", "name=sideband-demo").stdout.strip()
    assert len(token) > 20
    for file in demo.home.rglob("*"):
        if file.is_file():
            assert token.encode() not in file.read_bytes(), file
