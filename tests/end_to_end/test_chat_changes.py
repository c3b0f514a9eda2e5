"""Chat commands about what an agent has changed and may do: /undo, /diff, /permissions, /skills and /export."""

import json
import re
import subprocess

import pytest

HOSTILE = "<script>alert(1)</script>\x1b[2J"


@pytest.fixture
def lines(sideband, turns):
    """Return a function that sends lines to a chat without a terminal."""

    def say(*lines, scripted=("one",), words=(), **options):
        return sideband("chat", *words, *turns(*scripted), stdin="".join(f"{line}\n" for line in lines), **options)

    return say


READS = {"tool_calls": [{"name": "read", "arguments": {"path": "notes.txt"}}]}
WRITES = {"tool_calls": [{"name": "write", "arguments": {"path": "notes.txt", "content": "new\n"}}]}


@pytest.fixture
def repository(tmp_path):
    """A repository with a file."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "notes.txt").write_text("old\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def test_changes_of_the_last_run_are_undone(chat, turns, repository):
    chat = chat("--yes", "--mode", "full", *turns(READS, WRITES, "written"), folder=repository)
    chat.say("write")
    chat.wait_for("written", "]\n>")
    assert (repository / "notes.txt").read_text() == "new\n"
    chat.say("/undo")
    chat.wait_for("to undo the last run", "Continue? [y/N]")
    chat.type("y\r")
    chat.wait_for("done: ", "the conversation is unchanged")
    assert (repository / "notes.txt").read_text() == "old\n"
    chat.say("/undo session")
    chat.wait_for("this session is already undone")
    chat.leave()


def test_undo_changes_nothing_without_a_yes(chat, turns, repository):
    chat = chat("--yes", "--mode", "full", *turns(READS, WRITES, "written"), folder=repository)
    chat.say("write")
    chat.wait_for("written", "]\n>")
    chat.say("/undo")
    chat.wait_for("Continue? [y/N]")
    chat.type("\r")
    chat.wait_for("nothing was undone")
    assert (repository / "notes.txt").read_text() == "new\n"
    chat.leave()


def test_undo_without_a_run_is_explained(lines):
    done = lines("/undo", "/undo all", "hello", "/undo")
    assert done.stdout == "this session has no run yet\none\nthe last run changed nothing\n"
    assert "expected nothing or `session`, got `all`" in done.stderr


def test_differences_are_shown_in_colors(chat, turns, repository):
    (repository / "notes.txt").write_text("new\n")
    (repository / "added.txt").touch()
    chat = chat("--yes", *turns("one"), folder=repository)
    chat.say("/diff")
    chat.wait_for("-old\n+new", "new file: added.txt")
    assert b"\x1b[31m-old\x1b[0m" in chat.written
    assert b"\x1b[32m+new\x1b[0m" in chat.written
    chat.leave()


@pytest.mark.parametrize("program", ["diff.external", "diff.notes.textconv"])
def test_differences_run_no_program_of_the_repository(lines, repository, program):
    (repository / "notes.txt").write_text("new\n")
    (repository / ".gitattributes").write_text("*.txt diff=notes\n")
    trap = repository / "trap"
    trap.write_text('#!/bin/sh\ntouch trapped\ncat "$1"\n')
    trap.chmod(0o755)
    subprocess.run(["git", "config", program, str(trap)], cwd=repository, check=True)
    done = lines("/diff", words=["--yes"], folder=repository)
    assert "-old\n+new" in done.stdout
    assert not (repository / "trapped").exists()


def test_difference_of_a_question_is_shown_in_colors(chat, turns, repository):
    chat = chat("--mode", "manual", *turns(READS, WRITES, "done"), folder=repository)
    chat.say("write")
    chat.wait_for("Grant this? [y/s/a/N]")
    chat.type("s\r")  # the folder is asked for first
    chat.wait_for("\u2502 +new", "Allow this? ")
    assert b"\x1b[32m+new\x1b[0m" in chat.written
    chat.type("\r")
    chat.wait_for("done")
    chat.leave()


def test_output_of_tools_is_unfolded(chat, turns, hello):
    greets = {"tool_calls": [{"name": "hello__greet", "arguments": {"name": "Ada"}}]}
    chat = chat("--yes", "--skill-dir", hello, *turns(greets, "done"))
    chat.say("greet")
    chat.wait_for("hello.greet name=Ada: ok", "done")
    chat.type("\x0f")
    chat.wait_for('name = "Ada"', "result:")
    chat.type("\x0f")
    chat.wait_for("no more output of tools to show")
    chat.leave()


def test_permissions_are_listed_and_revoked(chat, turns, hello, make_skill):
    asks = make_skill(
        "asker",
        "from sideband.skill import tool\n@tool\nasync def look() -> int:\n    return 1\n",
        "sql:path=notes.db",
    )
    look = {"tool_calls": [{"name": "asker__look"}]}
    chat = chat("--skill-dir", asks, *turns(look, "done"))
    chat.say("look")
    chat.wait_for("[y/s/a/N]")
    chat.type("a\r")
    chat.wait_for("done", "]\n>")
    chat.say("/permissions")
    chat.wait_for("mode: assist", "skill asker", "sql:path=notes.db", "revoke ID")
    (grant,) = re.findall(r"^(\w+)  skill asker", chat.text, re.MULTILINE)
    chat.say(f"/permissions revoke {grant}")
    chat.wait_for("revoked for skill asker")
    chat.say("/permissions")
    chat.wait_for("no grants")
    chat.leave()


def test_skills_are_listed(lines, hello):
    done = lines("/skills", words=["--skill-dir", hello])
    assert re.search(r"^hello ", done.stdout, re.MULTILINE)


def test_session_is_exported_as_a_page_that_runs_nothing(lines, tmp_path):
    done = lines(f"{HOSTILE.replace(chr(27), '')} hello", "/export page.html", scripted=(HOSTILE,))
    assert "written to page.html" in done.stdout
    page = (tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J" in page
    assert "default-src 'none'" in page


def test_page_that_exists_is_not_replaced(lines, tmp_path):
    (tmp_path / "page.html").write_text("mine")
    assert "page.html" in lines("hello", "/export page.html").stderr
    assert (tmp_path / "page.html").read_text() == "mine"


def test_keys_of_vi_are_used_if_readline_does(chat, turns, tmp_path, sideband):
    (tmp_path / ".inputrc").write_text("set editing-mode vi\n")
    chat = chat(*turns("yes"))
    chat.type("helloxx\x1b")
    chat.wait_for("> helloxx")
    chat.type("XX\r")  # in the mode of commands, X deletes the character before the cursor
    chat.wait_for("> hellx", "yes")
    chat.leave()
    shown = json.loads(sideband("sessions", "show", "last", "--json").stdout)
    assert "hellx" in json.dumps(shown["entries"])
