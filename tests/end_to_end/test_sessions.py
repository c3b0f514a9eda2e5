"""``sideband sessions``: list, show, tree, fork, export and import."""

import json

import pytest

SESSION = "0123456789abcdef"
TIME = "2026-01-01T00:00:00.000Z"


def message_entry(entry, parent, text, role="user"):
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return {"id": entry, "parent": parent, "time": TIME, "type": "message", "message": message}


HEADER = {"type": "session", "version": 1, "id": SESSION, "time": TIME, "channel": "cli"}
LINES = [
    HEADER,
    message_entry("aaaaaaaaaaaaaaaa", None, "hello \x1b[31mred\x07\x9b \u202eover"),
    message_entry("bbbbbbbbbbbbbbbb", "aaaaaaaaaaaaaaaa", "first answer " + "long " * 40, "assistant"),
    message_entry("cccccccccccccccc", "bbbbbbbbbbbbbbbb", "an abandoned question"),
    {"id": "dddddddddddddddd", "parent": "cccccccccccccccc", "time": TIME, "type": "leaf", "target": "b" * 16},
    message_entry("eeeeeeeeeeeeeeee", "bbbbbbbbbbbbbbbb", "another question"),
    {"id": "ffffffffffffffff", "parent": "e" * 16, "time": TIME, "type": "label", "target": "b" * 16, "label": "here"},
]


@pytest.fixture
def sessions(sideband, tmp_path):
    """Return a function that runs the command in 80 columns, in a home with one session."""
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    done = sideband("sessions", "import", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"session {SESSION}, 6 entries\n", "")
    return lambda *words, **options: sideband("sessions", *words, COLUMNS="80", **options)


def test_list_shows_each_session(sessions):
    done = sessions("list")
    assert SESSION in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    (info,) = json.loads(sessions("list", "--json").stdout)
    assert (info["id"], info["messages"], info["entries"]) == (SESSION, 4, 6)
    assert sessions("list", "--text", "nowhere").stdout == "no sessions\n"


def test_control_characters_of_messages_are_removed(sessions):
    for words in (("show", SESSION), ("tree", SESSION), ("list",), ("show", SESSION, "--json")):
        shown = sessions(*words).stdout
        assert not set(shown) & {"\x1b", "\x07", "\x9b"}
        assert "red" in shown
    assert "\u202e" not in sessions("tree", SESSION).stdout


def test_show_prints_the_current_branch(sessions):
    shown = sessions("show", SESSION[:6]).stdout
    assert "another question" in shown
    assert "abandoned" not in shown
    data = json.loads(sessions("show", SESSION, "--at", "ccc", "--json").stdout)
    assert [entry["id"][0] for entry in data["entries"]] == ["a", "b", "c"]


def test_tree_shows_branches_labels_and_the_leaf_in_80_columns(sessions):
    lines = sessions("tree", SESSION).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line[:12].rstrip() for line in lines] == ["* aaaaaaaa u", "* bbbbbbbb [", "    cccccccc", "* eeeeeeee ("]
    assert "[here] model: first answer" in lines[1]
    assert "(here) user: another question" in lines[3]
    data = json.loads(sessions("tree", SESSION, "--json").stdout)
    assert (len(data["entries"]), data["labels"], data["leaf"]) == (6, {"b" * 16: "here"}, "f" * 16)


def test_fork_ends_at_the_given_entry(sessions):
    done = sessions("fork", SESSION, "--before", "cccc", "--name", "copy", SIDEBAND_DEBUG="1")
    assert done.returncode == 0, done.stderr
    data = json.loads(sessions("show", "copy", "--json").stdout)
    assert data["parent"] == SESSION
    assert [entry["id"][0] for entry in data["entries"] if entry["type"] == "message"] == ["a", "b"]
    assert json.loads(sessions("fork", SESSION, "--at", "here", "--json").stdout)["messages"] == 2


def test_export_equals_the_imported_file(sessions, tmp_path):
    file = tmp_path / "out.jsonl"
    assert sessions("export", SESSION, "--output", file).returncode == 0
    assert [json.loads(line) for line in file.read_text().splitlines()] == LINES
    assert sessions("export", SESSION).stdout == file.read_text()
    assert json.loads(sessions("export", SESSION, "--json").stdout) == LINES


def test_export_overwrites_a_file_only_with_force(sessions, tmp_path):
    file = tmp_path / "out.jsonl"
    file.write_text("mine")
    done = sessions("export", SESSION, "--output", file)
    assert (done.returncode, file.read_text()) == (2, "mine")
    assert "--force" in done.stderr
    assert sessions("export", SESSION, "--output", file, "--force").returncode == 0
    assert file.read_text() != "mine"


def test_pi_export_is_imported_from_standard_input(sessions):
    lines = sessions("export", SESSION, "--format", "pi").stdout
    assert json.loads(lines.splitlines()[0])["version"] == 3
    info = json.loads(sessions("import", "-", "--name", "from-pi", "--json", stdin=lines).stdout)
    assert (info["messages"], info["notices"]) == (4, [])
    assert "another question" in sessions("show", "from-pi").stdout


def test_damaged_file_is_imported_with_notices(sessions, tmp_path):
    file = tmp_path / "torn.jsonl"
    file.write_text(json.dumps({**HEADER, "id": "1" * 16}) + "\n{\n" * 30 + json.dumps(LINES[1])[:-5])
    done = sessions("import", file)
    assert done.returncode == 0
    assert "notice: line 2 " in done.stderr
    assert "notice: 11 more" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("show", "nothing"), "session.missing", 2),
        (("show", SESSION, "--at", "nothing"), "session.entry", 2),
        (("fork", SESSION, "--at", "nothing"), "session.entry", 2),
        (("import", "/nowhere/file"), "session.unreadable", 1),
        (("export", SESSION, "--output", "/nowhere/file"), "state.unwritable", 1),
    ],
)
def test_error_has_its_code_and_a_hint(sessions, words, code, exit_code):
    done = sessions(*words, "--json")
    error = json.loads(done.stdout)["error"]
    assert (error["code"], done.returncode) == (code, exit_code)
    assert error["hint"]
