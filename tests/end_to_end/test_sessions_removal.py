"""``sideband sessions rename|delete|prune``: names, and sessions that end with what was given for them."""

import json

import pytest

NOW, OLD = "2999-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z"
KEEP = "from sideband.skill import blobs, tool\n@tool\nasync def keep() -> None:\n    await blobs.put(content='a')\n"


@pytest.fixture
def sessions(sideband):
    """Return a function that runs the command, and returns its data, or its error if that is expected."""

    def run(*words, code=0, **options):
        done = sideband("sessions", *words, "--json", **options)
        assert done.returncode == code, done.stdout + done.stderr
        data = json.loads(done.stdout)
        return data["error"] if code else data

    return run


@pytest.fixture
def stored(sessions, tmp_path):
    """Import three sessions: `old1` and `old2`, whose name is `kept`, and `new1`."""

    def make(number, time, *names):
        session, user = f"{number:016x}", {"role": "user", "content": "hello"}
        lines = [
            {"type": "session", "version": 1, "id": session, "time": time, "channel": "cli"},
            {"id": "a" * 16, "parent": None, "time": time, "type": "message", "message": user},
            *({"id": "b" * 16, "parent": "a" * 16, "time": time, "type": "name", "name": name} for name in names),
        ]
        file = tmp_path / "in.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return sessions("import", file)["id"]

    return make(1, OLD), make(2, OLD, "kept"), make(3, NOW)


def ids(data, key):
    return {one["id"] for one in data[key]}


def test_new_name_finds_the_session(sessions, stored):
    old, kept, new = stored
    assert sessions("rename", old, "water plants")["name"] == "water plants"
    assert sessions("show", "water plants")["id"] == old
    assert "has the name `kept`" in sessions("rename", new, "kept", code=2)["message"]
    assert "cannot be the name" in sessions("rename", new, "last", code=2)["message"]
    assert sessions("rename", kept, "")["name"] is None
    assert sessions("show", "kept", code=2)["code"] == "session.missing"


def test_session_is_deleted_after_a_confirmation(sessions, stored, terminal):
    old, kept, new = stored
    assert sessions("delete", old, code=3)["code"] == "sessions.unconfirmed"
    asked = terminal("sessions", "delete", "kept", old)
    asked.wait_for("Delete 2 sessions?", old, kept)
    rows = {word: row for row in asked.text.splitlines() for word in ("session  ", old, kept) if word in row}
    assert {row.index(word) for word, row in rows.items()} == {2}
    asked.type("\n")
    assert asked.wait() == 3
    assert len(sessions("list")) == 3
    asked = terminal("sessions", "delete", "kept", old)
    asked.wait_for("Delete 2 sessions?")
    asked.type("y\n")
    assert asked.wait() == 0
    assert [one["id"] for one in sessions("list")] == [new]
    assert ids(sessions("delete", new, "--yes"), "deleted") == {new}


def test_only_old_sessions_are_pruned_and_only_on_confirmation(sessions, stored):
    old, kept, new = stored
    assert sessions("prune", code=2)["code"] == "usage"
    assert "such as 30d" in sessions("prune", "--older-than", "soon", code=2)["message"]
    listed = sessions("prune", "--older-than", "30d")
    assert (ids(listed, "found"), listed["deleted"]) == ({old}, [])
    assert len(sessions("list")) == 3
    assert ids(sessions("prune", "--keep", "1", "--named"), "found") == {old, kept}
    assert ids(sessions("prune", "--keep", "2", "--older-than", "30d", "--named"), "found") != {old, kept}
    assert sessions("prune", "--keep", "3", "--named", "--yes")["deleted"] == []
    assert ids(sessions("prune", "--older-than", "30d", "--yes"), "deleted") == {old}
    assert ids(sessions("prune", "--keep", "1", "--named", "--yes"), "deleted") == {kept}
    assert [one["id"] for one in sessions("list")] == [new]


def test_pruning_asks_at_a_terminal(sessions, stored, terminal):
    asked = terminal("sessions", "prune", "--older-than", "52w")
    asked.wait_for("Delete 1 session?", stored[0])
    asked.type("n\n")
    assert asked.wait() == 3
    assert len(sessions("list")) == 3


def test_session_in_use_is_refused(sessions, sideband, terminal, turns):
    chat = terminal("chat", *turns("hello"))
    chat.wait_for("mode assist")
    chat.say("hi there")
    chat.wait_for("hello")
    (info,) = sessions("list")
    error = sessions("delete", info["id"], "--yes", code=1)
    assert error["code"] == "session.locked"
    assert f"`sideband sessions fork {info['id']}`" in error["hint"]
    assert sessions("rename", info["id"], "x", code=1)["code"] == "session.locked"
    assert list(sessions("prune", "--keep", "1", "--yes")["kept"]) == []
    pruned = sessions("prune", "--older-than", "1m", "--yes")
    assert pruned["deleted"] == []
    chat.type("\x04")
    assert chat.wait() == 0
    assert ids(sessions("delete", info["id"], "--yes"), "deleted") == {info["id"]}


def test_grants_and_requests_for_a_session_end_with_it(sessions, sideband, turns, make_skill):
    skill = make_skill("notes", KEEP, "blobs:mode=write")
    calls = {"tool_calls": [{"name": "notes__keep"}]}
    options = ["--skill-dir", skill, "--grant", "notes=blobs:mode=write", "--mode", "assist", *turns(calls, "done")]

    def asked(*words):
        assert sideband("run", "keep", *options, *words).returncode == 3
        (open_request,) = json.loads(sideband("approvals", "list", "--json").stdout)
        return open_request["request"]

    request = asked()
    session = request["origin"]["session"]
    sideband("sessions", "export", session, "--output", "kept.jsonl")
    assert sideband("approvals", "approve", request["id"], "--session", "--yes").returncode == 0
    assert sideband("run", "--resume", "--session", session, *options).returncode == 0
    (grant,) = json.loads(sideband("grants", "list", "--json").stdout)
    assert grant["session"] == session
    sessions("delete", session, "--yes")
    assert json.loads(sideband("grants", "list", "--json").stdout) == []
    # An imported session gets its id back, but not its grants.
    assert sessions("import", "kept.jsonl")["id"] == session
    turns("done before", calls)
    again = asked("--session", session)
    sessions("delete", session, "--yes")
    assert again["id"] not in sideband("approvals", "list", "--all").stdout
