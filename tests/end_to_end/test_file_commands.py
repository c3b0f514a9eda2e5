"""Commands that are Markdown files, in `run` and in a chat."""

import pytest

SAID = """
from sideband_scripted import Scripted
def sideband_providers():
    return [Scripted([lambda request: "GOT " + request.messages[-1].text] * 9, name="echo", model="test")]
"""
WORDS = ("-q", "-m", "echo:test")


@pytest.fixture
def echo(plugin, tmp_path):
    folder = tmp_path / "home/commands/git"
    folder.mkdir(parents=True)
    (folder / "squash.md").write_text("---\ndescription: Squash a branch\nargument-hint: BRANCH\n---\nSquash $1.")
    return plugin("echo", "provider", SAID)


def test_run_replaces_a_command_of_its_arguments_only(sideband, echo):
    assert sideband("run", "/git:squash main", *WORDS, **echo).stdout == "GOT Squash main.\n"
    assert sideband("run", "/git:squash", "main", *WORDS, stdin="x", **echo).stdout == (
        "GOT Squash main.\n\n<input>\nx\n</input>\n"
    )
    for words in ((), ("-",)):
        piped = sideband("run", *words, *WORDS, stdin="/git:squash main", **echo)
        assert piped.stdout == "GOT /git:squash main\n"


def test_chat_lists_and_sends_them(sideband, echo):
    done = sideband("chat", *WORDS, stdin="/git:squash main\n/help\n/commands\n/git:squish x\n", **echo)
    assert done.stdout.startswith("GOT Squash main.\n")
    assert "/git:squash BRANCH" in done.stdout
    assert "Squash a branch (prompt)" in " ".join(done.stdout.split())
    assert "commands/git/squash.md" in done.stdout
    assert "did you mean `/git:squash`?" in done.stderr


def test_menu_of_the_chat_completes_them(terminal, echo):
    chat = terminal("chat", *WORDS, **echo)
    chat.wait_for("/help for commands")
    chat.type("/git")
    chat.wait_for("/git:squash", "Squash a branch")
    chat.type("\t main")
    chat.wait_for("/git:squash main")
    chat.type("\r")
    chat.wait_for("GOT Squash main.")
    chat.type("\x04")
    assert chat.wait() == 0


def test_new_file_is_a_command_of_the_running_chat(terminal, echo, tmp_path):
    chat = terminal("chat", *WORDS, **echo)
    chat.wait_for("/help for commands")
    (tmp_path / "home/commands/plan.md").write_text("Plan $1.")
    chat.say("/plan lunch")
    chat.wait_for("GOT Plan lunch.")
    chat.type("/pla")
    chat.wait_for("Plan $1.")
    chat.type("\t dinner")
    chat.wait_for("/plan dinner")
    chat.type("\r")
    chat.wait_for("GOT Plan dinner.")
    chat.type("\x04")
    assert chat.wait() == 0
