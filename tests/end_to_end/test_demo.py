"""The main job, as a user runs it: `sideband demo`."""

import json

import pytest


@pytest.fixture
def demo(sideband):
    return lambda *words: sideband("demo", *words)


def test_the_demo_shows_what_a_real_skill_did(demo):
    done = demo()
    assert done.returncode == 0, done.stderr
    assert "fetching 6 pages at once" in done.stderr
    for part in ("Saturn   274", "sql.executemany", "secrets.read", "denied", "isolates the worker", "ledger is whole"):
        assert part in done.stdout


def test_the_demo_as_data_has_the_result_the_effects_and_the_verdict(demo):
    data = json.loads(demo("--json").stdout)
    assert [planet["name"] for planet in data["output"]["planets"]][:3] == ["Mercury", "Venus", "Earth"]
    assert data["output"]["refused"]["code"] == "op.denied"
    assert data["audit"]["ok"] is True
    assert {effect["status"] for effect in data["effects"]} == {"done", "denied"}
    assert all(effect["ms"] >= 0 for effect in data["effects"])


def test_the_pages_are_fetched_at_once(demo, sideband):
    demo()
    data = json.loads(sideband("audit", "query", "--op", "http.get", "--json").stdout)
    lines = [entry for effect in data for entry in effect["entries"]]
    lines.sort(key=lambda line: line["seq"])
    # All intents stand before the first outcome: six requests were under way together.
    assert [line["kind"] for line in lines[:6]] == ["intent"] * 6


def test_after_the_demo_its_skill_can_be_called_for_data(demo, sideband):
    demo()
    done = sideband("call", "demo.harvest", "pages=3", "--json")
    assert len(json.loads(done.stdout)["output"]["planets"]) >= 3


def test_before_anybody_granted_anything_the_call_ends_with_exit_code_3(sideband):
    done = sideband("call", "demo.harvest", "--json")
    assert done.returncode == 3
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "grant.required"
    assert "--yes" in error["hint"]


def test_the_token_is_nowhere_in_what_the_demo_leaves_behind(demo, sideband, tmp_path):
    demo()
    token = sideband("op", "secrets.read", "name=sideband-demo").stdout.strip()
    assert len(token) > 20
    for file in (tmp_path / "home").rglob("*"):
        if file.is_file():
            assert token.encode() not in file.read_bytes(), file
