"""``sideband grants``: list what was granted, and revoke one grant exactly."""

import json

import pytest

NOTES = """
from sideband.skill import blobs, tool


@tool
async def keep(text: str) -> str:
    await blobs.put(content=text)
    return text
"""
GET = "http:host=a.example,method=GET,network=public"


@pytest.fixture
def grants(sideband):
    def run(*words, status=0):
        done = sideband("grants", *words)
        assert done.returncode == status, done.stderr
        return done

    return run


@pytest.fixture
def notes(make_skill):
    return make_skill("notes", NOTES, f"blobs:mode=write {GET}")


def call(sideband, notes, *words):
    return sideband("call", "--skill-dir", notes, "notes.keep", "text=a", *words).returncode


def test_grant_of_a_skill_is_listed_and_revoked_exactly(sideband, grants, notes):
    assert grants("list").stdout == "no grants\n"
    assert call(sideband, notes) == 3
    assert call(sideband, notes, "--yes") == 0
    (one,) = json.loads(grants("list", "--json").stdout)
    assert (one["kind"], one["subject"], one["scope"]) == ("skill", "notes", "always")
    assert one["capabilities"] == ["blobs:mode=write", GET]
    assert "(--yes)" in one["by"]
    assert GET in grants("revoke", one["id"], GET).stdout
    assert json.loads(grants("list", "--json").stdout)[0]["capabilities"] == ["blobs:mode=write"]
    assert call(sideband, notes) == 3
    grants("revoke", one["id"])
    assert grants("list").stdout == "no grants\n"
    assert call(sideband, notes) == 3


def test_lasting_answer_about_an_effect_is_listed_and_revoked(sideband, grants, notes, turns):
    keep = {"tool_calls": [{"name": "notes__keep", "arguments": {"text": "a"}}]}
    options = ["--skill-dir", notes, "--grant", "notes=blobs:mode=write", "--grant", f"notes={GET}"]
    run = ["run", "keep", *options, "--mode", "assist", *turns(keep, "done")]
    assert sideband(*run).returncode == 3
    ((request),) = json.loads(sideband("approvals", "list", "--json").stdout)
    assert sideband("approvals", "approve", request["request"]["id"], "--always", "--yes").returncode == 0
    assert sideband(*run).returncode == 0
    (one,) = json.loads(grants("list", "--json").stdout)
    assert (one["id"], one["kind"], one["subject"]) == (request["request"]["id"], "effect", "blobs.put")
    assert (one["requester"], one["scope"], one["capabilities"]) == ("notes.keep", "always", ["blobs:mode=write"])
    assert "effect blobs.put by notes.keep" in " ".join(grants("list").stdout.split())
    grants("revoke", one["id"][:6])
    assert sideband(*run).returncode == 3


def test_grant_that_does_not_exist_is_refused(sideband, grants, notes):
    assert "no grant `none` is remembered [grant.unknown]" in grants("revoke", "none", status=2).stderr
    call(sideband, notes, "--yes")
    (one,) = json.loads(grants("list", "--json").stdout)
    refused = grants("revoke", one["id"], "sql:path=a.db", status=2)
    assert "does not have the capability `sql:path=a.db`" in refused.stderr
    assert len(json.loads(grants("list", "--json").stdout)) == 1


def test_revocation_is_recorded(sideband, grants, notes):
    call(sideband, notes, "--yes")
    (one,) = json.loads(grants("list", "--json").stdout)
    grants("revoke", one["id"], GET)
    entries = json.loads(sideband("audit", "tail", "--json").stdout)
    answer = [one for one in entries if one.get("op") == "approval.answer"][-1]
    assert (answer["status"], answer["params"]["effect"]["capabilities"]) == ("denied", [GET])
    assert "(sideband grants)" in answer["decisions"][0]["by"]
