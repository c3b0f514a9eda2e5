"""The differences that clients are shown, and what they never show."""

import os

import pytest
from sideband_acp._changes import Changes
from sideband_acp._plan import plan_of

SECRET = "the-secret-value"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("one\ntwo\none\n")
    return folder


@pytest.fixture
def changes(folder):
    return Changes(folder, lambda text: text.replace(SECRET, "[redacted]"))


def shown(found):
    return [(one.path, one.old_text, one.new_text) for one in found]


def test_content_is_compared_with_that_of_the_file(changes, folder):
    write = {"path": "notes.txt", "content": "new\n"}
    path = str(folder / "notes.txt")
    assert shown(changes.of_call("write", write)) == [(path, "one\ntwo\none\n", "new\n")]
    assert shown(changes.of_effect("files.write", {**write, "path": path})) == [(path, "one\ntwo\none\n", "new\n")]
    assert shown(changes.of_call("write", {"path": "a/b.txt", "content": "x"})) == [
        (str(folder / "a/b.txt"), None, "x")
    ]


def test_replacements_are_made_in_their_order(changes):
    edits = [{"old": "one", "new": "1", "all": True}, {"old": "1\ntwo", "new": "2"}]
    ((_, _, new),) = shown(changes.of_call("edit", {"path": "notes.txt", "edits": edits}))
    assert new == "2\n1\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "notes.txt"}),
        ("write", {"path": "notes.txt"}),
        ("write", {"path": 3, "content": "x"}),
        ("write", {"path": "../outside.txt", "content": "x"}),
        ("write", {"path": "link.txt", "content": "x"}),
        ("write", {"path": "folder/inside.txt", "content": "x"}),
        ("write", {"path": "pipe", "content": "x"}),
        ("write", {"path": ".", "content": "x"}),
        ("write", {"path": "a\0b", "content": "x"}),
        ("write", {"path": "binary", "content": "x"}),
        ("write", {"path": "latin", "content": "x"}),
        ("write", {"path": "large", "content": "x"}),
        ("write", {"path": "secret", "content": "x"}),
        ("write", {"path": "notes.txt", "content": f"it is {SECRET}"}),
        ("write", {"path": "notes.txt", "content": "x" * (1 << 21)}),
        ("edit", {"path": "none.txt", "edits": [{"old": "one", "new": "1"}]}),
        ("edit", {"path": "notes.txt", "edits": [{"old": "three", "new": "3"}]}),
        ("edit", {"path": "notes.txt", "edits": [{"old": "", "new": "3"}]}),
        ("edit", {"path": "notes.txt", "edits": "one"}),
    ],
)
def test_change_that_cannot_be_shown_in_full_is_not_shown(changes, folder, tmp_path, tool, arguments):
    (tmp_path / "outside.txt").write_text("private")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "folder").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / "binary").write_bytes(b"a\0b")
    (folder / "latin").write_bytes(b"\xe9")
    (folder / "large").write_text("x" * (1 << 21))
    (folder / "secret").write_text(f"it is {SECRET}")
    assert changes.of_call(tool, arguments) == []


@pytest.mark.parametrize("params", [{"append": True}, {"content": "cut…"}, {"content": None}, {"path": None}])
def test_effect_that_is_known_in_part_is_not_shown_as_a_difference(changes, params):
    write = {"path": "notes.txt", "content": "new\n"}
    assert changes.of_effect("files.write", {**write, **params}) == []
    assert changes.of_effect("files.delete", write) == []


def test_list_of_tasks_that_is_damaged_is_not_a_plan():
    assert plan_of(None) is None
    assert plan_of({"tasks": [{"text": "a", "state": "lost"}]}) is None
    assert plan_of({"tasks": [{"text": "a\x1b", "state": "done"}], "added": 1}).entries[0].content == "a\\x1b"
