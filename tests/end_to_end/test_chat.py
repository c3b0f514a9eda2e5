"""The chat at a terminal: what is typed, shown, asked, interrupted, and what stays behind."""

import re
import signal
import stat

import pytest

GATE = {"tool_calls": [{"name": "gate__wait"}]}
ASKER = "from sideband.skill import tool\n@tool\nasync def look() -> int:\n    return 1\n"
LOOK = {"tool_calls": [{"name": "asker__look"}]}


@pytest.fixture
def chat(terminal):
    """A chat whose prompt is there."""

    def start(*words, **environment):
        chat = terminal("chat", *words, **environment)
        chat.wait_for("[scripted:test", "\n>")
        return chat

    return start


def leave(chat):
    chat.type("\x04")
    assert chat.wait() == 0
    assert chat.is_restored()


def test_a_message_is_answered_and_the_next_one_continues_the_conversation(chat, turns):
    chat = chat(*turns("Hello there.", "Goodbye then."))
    chat.say("hello")
    chat.wait_for("> hello", "Hello there.")
    chat.say("goodbye")
    chat.wait_for("Goodbye then.")
    leave(chat)


def test_text_appears_while_it_comes_also_where_it_has_no_line_breaks(chat, turns):
    text = "word " * 40
    chat = chat(*turns({"text": text, "hang_after": 30}))
    chat.say("hello")
    chat.wait_for("word word word", "working")
    assert max(map(len, chat.text.splitlines())) <= 80
    chat.type("\x03")
    chat.wait_for("aborted")
    leave(chat)


def test_the_status_line_tells_model_context_and_cost(chat, turns):
    usage = {"input": 90_000, "output": 10_000, "cost": 0.0123}
    chat = chat(*turns({"text": "yes", "usage": usage}))
    chat.say("hello")
    chat.wait_for("[scripted:test · 50 % of 200k · $0.0123]")
    leave(chat)


def test_a_backslash_at_the_end_of_a_line_goes_on_with_the_next(chat, turns):
    chat = chat(*turns("yes"))
    chat.say("one\\")
    chat.say("two")
    chat.wait_for("> one\n  two", "yes")
    leave(chat)


def test_a_paste_of_several_lines_is_one_message(chat, turns):
    chat = chat(*turns("yes", "no"))
    chat.type("\x1b[200~one\r\ntwo\r\nthree\x1b[201~")
    chat.wait_for("three")
    chat.type("\r")
    chat.wait_for("> one\n  two\n  three", "yes")
    assert "no" not in chat.text.splitlines()
    leave(chat)


def test_what_was_typed_is_there_in_the_next_chat_and_nobody_else_can_read_it(chat, turns, tmp_path):
    first = chat(*turns("yes"))
    first.say("something to remember")
    first.wait_for("yes")
    leave(first)
    assert stat.S_IMODE((tmp_path / "home" / "history").stat().st_mode) == 0o600
    second = chat(*turns("yes"))
    second.type("\x1b[A")
    second.wait_for("> something to remember")
    second.type("\x03")
    leave(second)


def test_an_interrupt_ends_the_run_and_the_chat_goes_on(chat, turns):
    chat = chat(*turns({"text": "one two three", "hang_after": 1}))
    chat.say("hello")
    chat.wait_for("working")
    chat.type("\x03")
    chat.wait_for("ending the run", "aborted", "]\n>")
    turns("after")
    chat.say("again")
    chat.wait_for("> again", "working")
    leave(chat)  # which ends the run


def test_a_command_that_has_to_wait_says_what_can_be_done_here(chat, turns, gate):
    chat = chat("--yes", "--skill-dir", gate.folder, *turns(GATE))
    chat.say("wait")
    assert gate.reached.wait(20)
    chat.say("/rewind")
    chat.wait_for("[agent.busy]", "end its run with Ctrl-C")
    assert "wait_for_idle" not in chat.text
    chat.type("\x03\x03")
    assert chat.wait() == 0


def test_a_second_interrupt_leaves(chat, turns, gate):
    chat = chat("--yes", "--skill-dir", gate.folder, *turns(GATE))
    chat.say("wait")
    assert gate.reached.wait(20)
    chat.type("\x03\x03")
    assert chat.wait() == 0
    assert chat.is_restored()


def test_an_interrupt_while_nothing_goes_on_clears_the_line_and_says_how_to_leave(chat, turns):
    chat = chat(*turns("yes"))
    chat.type("half a sentence")
    chat.wait_for("half a sentence")
    chat.type("\x03")
    chat.type("\x03")
    chat.wait_for("Ctrl-D or /quit leaves")
    assert "half" not in chat.text
    leave(chat)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_restored_when_the_chat_is_ended_from_outside(chat, turns, number):
    chat = chat(*turns({"text": "one", "hang_after": 0}))
    chat.say("hello")
    chat.wait_for("working")
    chat.process.send_signal(number)
    chat.wait()
    assert chat.is_restored()


def test_what_is_typed_while_it_works_is_seen_before_the_next_step(chat, turns, gate):
    chat = chat("--yes", "--skill-dir", gate.folder, *turns(GATE, "done"))
    chat.say("wait")
    assert gate.reached.wait(20)
    chat.say("also this")
    chat.wait_for("> also this", "queued")
    gate.opened.set()
    chat.wait_for("done", "]\n>")
    chat.say("/tree")
    chat.wait_for("model: done")
    assert re.search(r"user: wait.*gate__wait.*user: also this.*model: done", chat.text, re.DOTALL)
    leave(chat)


def test_what_is_said_for_later_begins_a_run_of_its_own(chat, turns, gate):
    chat = chat("--yes", "--skill-dir", gate.folder, *turns(GATE, "first", "second"))
    chat.say("wait")
    assert gate.reached.wait(20)
    chat.say("/later and then this")
    chat.wait_for("queued")
    gate.opened.set()
    chat.wait_for("first", "second")
    leave(chat)


def test_what_no_run_has_taken_is_given_back(chat, turns, gate):
    chat = chat("--yes", "--skill-dir", gate.folder, *turns(GATE))
    chat.say("wait")
    assert gate.reached.wait(20)
    chat.say("also this")
    chat.wait_for("queued")
    chat.type("\x03")
    chat.wait_for("aborted", "]\n> also this")
    chat.type("\x03")
    leave(chat)


@pytest.mark.parametrize(("answer", "outcome"), [("y", "ok"), ("n", "failed"), ("\x04", "failed")])
def test_rights_are_asked_for_in_the_chat(chat, turns, make_skill, answer, outcome):
    skill = make_skill("asker", ASKER, "sql:path=notes.db")
    chat = chat("--skill-dir", skill, *turns(LOOK, "done"))
    chat.say("look")
    chat.wait_for("sql:path=notes.db", "[y/N]")
    chat.type(answer + "\r" * (answer != "\x04"))
    chat.wait_for(outcome, "done")
    leave(chat)


def test_what_was_being_typed_is_no_answer_and_is_there_again_after_a_question(chat, turns, make_skill, gate):
    skill = make_skill("asker", ASKER, "sql:path=notes.db")
    chat = chat("--skill-dir", skill, "--skill-dir", gate.folder, *turns(GATE, LOOK, "done"))
    chat.say("look")
    chat.wait_for("http:host=127.0.0.1", "[y/N]")
    chat.type("y\r")
    assert gate.reached.wait(20)
    chat.type("y")
    chat.wait_for("\n> y")
    gate.opened.set()
    chat.wait_for("sql:path=notes.db", "of the skill? [y/N]")
    chat.type("\r")
    chat.wait_for("failed", "done", "]\n> y")
    chat.type("\x03")
    leave(chat)


def test_a_guards_question_shows_all_arguments_and_is_not_kept_in_the_history(chat, turns, hello, plugin, tmp_path):
    environment = plugin(
        "careful",
        "guard",
        "from sideband.hooks import Ask, hookimpl\nclass Careful:\n    @hookimpl\n"
        "    def tool_call(self, event):\n        return Ask('is this wise?')\n"
        "def sideband_guards():\n    return [Careful]\n",
    )
    hidden = "x" * 100 + "hidden"
    call = {"tool_calls": [{"name": "hello__greet", "arguments": {"name": hidden}}]}
    chat = chat("--skill-dir", hello, *turns(call, "done"), **environment)
    chat.say("greet")
    chat.wait_for("is this wise?", "[y/N]")
    assert "hidden" in chat.text
    chat.type("yes\r")
    chat.wait_for("ok", "done")
    leave(chat)
    assert "yes" not in (tmp_path / "home" / "history").read_text()


def test_what_a_model_says_moves_no_cursor_wherever_it_is_split(chat, turns):
    chat = chat(*turns("\x1b[31mred\u202e \x1b]0;title\x07done"))
    chat.say("hello")
    chat.wait_for("done")
    assert b"\x1b[31m" not in chat.written
    assert b"\x1b]0;" not in chat.written
    assert "\u202e".encode() not in chat.written
    leave(chat)


def test_a_session_goes_on_and_says_that_its_last_run_did_not_end(chat, turns):
    options = turns({"text": "never", "failures": [{"status": 401}]})
    first = chat(*options)
    first.say("hello")
    first.wait_for("/retry")
    leave(first)
    turns("It works now.")
    second = chat("--session", "last", *options[2:])
    second.wait_for("/retry goes on with it")
    second.say("/retry")
    second.wait_for("It works now.")
    leave(second)


def test_the_chat_ends_when_a_plugin_asks_for_it(chat, turns, plugin):
    environment = plugin(
        "ender",
        "hook",
        "from sideband.hooks import hookimpl\n@hookimpl\ndef agent_end(event, ctx):\n    ctx.shutdown()\n",
    )
    chat = chat(*turns("bye"), **environment)
    chat.say("hello")
    assert chat.wait() == 0
    assert chat.is_restored()


def test_a_terminal_that_can_not_be_edited_is_read_line_by_line(terminal, turns):
    chat = terminal("chat", *turns("one"), TERM="dumb")
    chat.wait_for("/help")
    chat.type("hello\n")
    chat.wait_for("one")
    chat.type("\x04")
    assert chat.wait() == 0
    assert b"\x1b" not in chat.written


def test_no_prompt_follows_who_leaves_a_terminal_that_can_not_be_edited(terminal, turns):
    chat = terminal("chat", *turns("one"), TERM="dumb")
    chat.wait_for("leaves\n>")  # what is typed before the prompt would stand in front of it
    chat.type("/quit\n")
    assert chat.wait() == 0
    assert chat.text.count("> ") == 1


def test_a_chat_that_waits_for_a_line_can_be_ended_from_outside(terminal, turns):
    chat = terminal("chat", *turns("one"), TERM="dumb")
    chat.wait_for("/help")
    chat.process.send_signal(signal.SIGTERM)
    assert chat.wait() == 0


def test_lines_that_are_piped_in_are_answered_one_after_the_other(sideband, turns):
    done = sideband("chat", *turns("one", "two"), stdin="a\nb\\\nc\n/tree\n")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == ["one", "two"]
    assert "user: b c" in done.stdout


def test_warnings_appear_above_the_prompt(chat, turns):
    chat = chat("--tools", "nothing.there", *turns("yes"))
    chat.wait_for("there is no tool `nothing.there`", "]\n>")
    leave(chat)
