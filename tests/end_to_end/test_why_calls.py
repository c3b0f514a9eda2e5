"""``sideband audit why`` of an effect that no agent asked for: who granted its rights, what its call did besides."""

import json

import pytest

CODE = (
    "from sideband.skill import crypto, progress, tool\n@tool\nasync def digest(text: str) -> int:\n"
    "    await progress.report(message='on it')\n    return len(await crypto.hash(data=text))\n"
)


@pytest.fixture
def effect(sideband, make_skill):
    """The hashing of a call."""
    skill = make_skill("digests", CODE, "crypto:op=hash")
    done = sideband("call", "digests.digest", "text=abc", "--skill-dir", skill, "--grant", "crypto:op=hash", "--json")
    assert done.returncode == 0, done.stderr
    effects = json.loads(done.stdout)["effects"]
    return next(one["id"] for one in effects if one["op"] == "crypto.hash")


def test_it_is_told_who_granted_what_and_what_the_call_did_besides(sideband, effect):
    said = sideband("audit", "why", effect, COLUMNS="120").stdout
    assert "allowed by  crypto:op=hash, granted by whoever made the call" in said
    assert "asked by    digests.digest, for user" in said
    assert "effects of the call" in said
    assert "progress.report" in said
    data = json.loads(sideband("audit", "why", effect, "--json").stdout)
    assert [one["op"] for one in data["effects"]] == ["progress.report", "crypto.hash"]
    assert data["takes_back"] is None
