"""What can be asked for with a slash in a chat, piped in: each line is answered before the next one is read."""

import re

import pytest


@pytest.fixture
def chat(sideband, turns):
    """Says these lines to a model with these turns."""

    def say(*lines, spoken=("one", "two", "three"), words=(), **environment):
        return sideband("chat", *words, *turns(*spoken), stdin="".join(f"{line}\n" for line in lines), **environment)

    return say


def test_help_lists_every_command_and_fits_a_terminal(chat):
    done = chat("/help", COLUMNS="80")
    names = (
        "help model models tools session sessions new fork rewind tree label name compact cost status export retry quit"
    )
    for name in names.split():
        assert re.search(rf"^/{name}\b", done.stdout, re.MULTILINE), name
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_an_unknown_command_says_the_closest_one_and_how_to_say_it_to_the_model(chat):
    done = chat("/sesion", " /usr/bin is full")
    assert "did you mean `/session`?" in done.stderr
    assert "begin the message with a space" in done.stderr
    assert done.stdout == "one\n"


def test_quit_leaves_what_follows_unread(chat):
    assert chat("/quit", "hello").stdout == ""


def test_the_model_is_shown_and_changed_for_the_session(chat):
    done = chat("/model", "/model scripted:other", "/model")
    assert done.stdout.splitlines() == ["scripted:test", "the model is scripted:other", "scripted:other"]


def test_models_that_can_be_used_are_listed(chat):
    assert "scripted:test" in chat("/models scripted").stdout


def test_tools_are_listed_with_where_they_come_from(chat, hello):
    done = chat("/tools", words=["--skill-dir", hello])
    assert re.search(r"^hello\.greet .* skill hello$", done.stdout, re.MULTILINE)


def test_sessions_are_named_listed_left_and_found_again(chat):
    done = chat("hello", "/name stars", "/new", "/sessions", "/session stars")
    assert "the session is called `stars`" in done.stdout
    assert re.search(r"^\w{16} .* stars$", done.stdout, re.MULTILINE)
    assert re.search(r"^name +stars$", done.stdout, re.MULTILINE)


def test_a_rewind_takes_the_last_message_back_and_keeps_it_as_a_branch(chat):
    done = chat("hello", "wrong", "/rewind", "right", "/tree", spoken=("one", "two"))
    assert done.stdout.splitlines()[:2] == ["one", "two"]
    shown = [(line[0], line.partition(": ")[2]) for line in done.stdout.splitlines()[2:] if ": " in line]
    assert shown == [("*", "hello"), ("*", "one"), (" ", "wrong"), (" ", "two"), ("*", "right"), ("*", "two")]


def test_a_rewind_goes_no_further_than_the_first_message(chat):
    assert "1 messages of yours" in chat("hello", "/rewind 2").stderr


def test_a_label_marks_an_entry_and_a_rewind_finds_it(chat):
    done = chat("hello", "/label start", "more", "/rewind start", "/tree")
    assert re.search(r"^\* \w{8} \[start\] .*model: one$", done.stdout, re.MULTILINE)
    assert re.search(r"^  +\w{8} user: more$", done.stdout, re.MULTILINE)


def test_a_fork_is_a_session_of_its_own(chat):
    done = chat("hello", "/fork", "more", "/session")
    assert done.stdout.splitlines()[0] == "one"
    assert re.search(r"^session \w{16}, a copy of \w{16}$", done.stdout, re.MULTILINE)
    assert "forked from" in done.stdout


def test_cost_and_status_tell_what_was_used(chat):
    usage = {"input": 90_000, "output": 10_000, "cost": 0.0123}
    done = chat("hello", "/cost", "/status", spoken=({"text": "yes", "usage": usage},))
    assert "90k tokens in, 10k out, $0.0123" in done.stdout
    assert re.search(r"^context +50 % of 200k$", done.stdout, re.MULTILINE)


def test_a_short_conversation_has_nothing_to_compact(chat):
    assert "nothing to shorten" in chat("hello", "/compact").stdout


def test_there_is_nothing_to_retry_after_a_run_that_ended(chat):
    assert "nothing to go on with" in chat("hello", "/retry").stderr


def test_a_session_is_written_to_a_file_that_is_not_overwritten(chat, tmp_path):
    done = chat("hello", "/export out.jsonl", "/export out.jsonl")
    assert "out.jsonl" in done.stdout
    assert "hello" in (tmp_path / "out.jsonl").read_text()
    assert "error:" in done.stderr
    assert "--force" not in done.stderr


def test_a_plugin_adds_a_command_that_gets_the_agents_context(chat, plugin):
    environment = plugin("todo", "hook", COMMAND.format(name="todo"))
    done = chat("/todo buy milk", "/help", **environment)
    assert "todo: buy milk in scripted:test" in done.stdout
    assert "keep a list (todo)" in done.stdout


def test_a_command_of_a_plugin_that_fails_ends_nothing(chat, plugin):
    code = COMMAND.format(name="todo").replace("return f", "raise ValueError('no list')\n    return f")
    done = chat("/todo", "hello", **plugin("todo", "hook", code))
    assert "no list" in done.stderr
    assert done.stdout == "one\n"


def test_a_command_that_two_plugins_have_is_left_out_and_the_chats_own_can_not_be_replaced(chat, plugin):
    plugin("first", "hook", COMMAND.format(name="todo"))
    plugin("third", "hook", COMMAND.format(name="quit"))
    done = chat("/todo", "/quit", "hello", **plugin("second", "hook", COMMAND.format(name="todo")))
    assert "`/todo` is left out: `first` and `second` have it" in done.stderr
    assert "`/quit` of `third` is left out" in done.stderr
    assert "there is no command `/todo`" in done.stderr
    assert "[chat.command]" in done.stderr
    assert done.stdout == ""


COMMAND = """
from sideband.hooks import ChatCommand, hookimpl

async def todo(text, ctx):
    return f"todo: {{text}} in {{ctx.model}}"

@hookimpl
def chat_commands(event):
    return [ChatCommand("{name}", "keep a list", todo)]
"""
