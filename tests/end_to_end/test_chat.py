"""The chat at a terminal: input, output, questions, interrupts and the restored terminal."""

import re
import signal
import stat
import time

import pytest

CTRL_D = "\x04"
GATE = {"tool_calls": [{"name": "gate__wait"}]}
ASKER = "from sideband.skill import tool\n@tool\nasync def look() -> int:\n    return 1\n"
LOOK = {"tool_calls": [{"name": "asker__look"}]}


def test_second_message_continues_the_conversation(chat, turns):
    chat = chat(*turns("Hello there.", "Goodbye then."))
    chat.say("hello")
    chat.wait_for("> hello", "Hello there.")
    chat.say("goodbye")
    chat.wait_for("Goodbye then.")
    chat.leave()


def test_text_without_line_breaks_is_streamed(chat, turns):
    text = "word " * 40
    chat = chat(*turns({"text": text, "hang_after": 30}))
    chat.say("hello")
    chat.wait_for("word word word", "working")
    assert max(map(len, chat.text.splitlines())) <= 80
    chat.type("\x03")
    chat.wait_for("aborted")
    chat.leave()


def test_status_line_shows_model_context_cost_and_approval_mode(chat, turns):
    usage = {"input": 90_000, "output": 10_000, "cost": 0.0123}
    chat = chat(*turns({"text": "yes", "usage": usage}))
    chat.say("hello")
    chat.wait_for("[scripted:test · 50 % of 200k · $0.0123 · mode assist]")
    chat.say("/mode semi")
    chat.wait_for("$0.0123 · mode semi]")
    chat.leave()


def test_backslash_at_the_end_of_a_line_continues_the_message(chat, turns):
    chat = chat(*turns("yes"))
    chat.say("one\\")
    chat.say("two")
    chat.wait_for("> one\n▌   two", "yes")
    chat.leave()


def test_pasted_lines_are_one_message(chat, turns):
    chat = chat(*turns("yes", "no"))
    chat.type("\x1b[200~one\r\ntwo\r\nthree\x1b[201~")
    chat.wait_for("three")
    chat.type("\r")
    chat.wait_for("> one\n▌   two\n▌   three", "yes")
    assert "no" not in chat.text.splitlines()
    chat.leave()


def test_history_is_kept_for_the_next_chat_and_readable_by_its_owner_only(chat, turns, tmp_path):
    first = chat(*turns("yes"))
    first.say("something to remember")
    first.wait_for("yes")
    first.leave()
    assert stat.S_IMODE((tmp_path / "home" / "history").stat().st_mode) == 0o600
    second = chat(*turns("yes"))
    second.type("\x1b[A")
    second.wait_for("> something to remember")
    second.type("\x03")
    second.leave()


def test_interrupt_aborts_the_run_and_the_chat_continues(chat, turns):
    chat = chat(*turns({"text": "one two three", "hang_after": 1}))
    chat.say("hello")
    chat.wait_for("working")
    chat.type("\x03")
    chat.wait_for("aborting the run", "aborted", "]\n>")
    turns("after")
    chat.say("again")
    chat.wait_for("> again", "after")
    chat.leave()


def test_busy_agent_error_has_a_hint_for_the_chat(chat, turns, gate):
    chat = chat("--yes", "--skill-dir", gate.folder, *turns(GATE))
    chat.say("wait")
    assert gate.reached.wait(20)
    chat.say("/rewind")
    chat.wait_for("[agent.busy]", "abort the run with Ctrl-C")
    assert "wait_for_idle" not in chat.text
    chat.type("\x03\x03")
    assert chat.wait() == 0


def test_second_interrupt_leaves_the_chat(chat, turns, gate):
    chat = chat("--yes", "--skill-dir", gate.folder, *turns(GATE))
    chat.say("wait")
    assert gate.reached.wait(20)
    chat.type("\x03\x03")
    assert chat.wait() == 0
    assert chat.is_restored()


def test_left_chat_leaves_no_status_on_the_screen_and_says_how_to_continue(chat, turns):
    chat = chat(*turns({"text": "word " * 40, "hang_after": 30}))
    chat.say("hello")
    chat.wait_for("word word", "working")
    chat.type("\x03\x03")
    assert chat.wait() == 0
    session = re.search(r"session (\w+)", chat.text)[1]
    assert chat.text.endswith(
        "▌ aborting the run; press Ctrl-C again to leave the chat\n▌ aborted: interrupted [agent.aborted]\n"
        f"▌ to continue: sideband chat --session {session}"
    )


def test_chat_without_messages_does_not_say_how_to_continue(chat, turns):
    chat = chat(*turns("yes"))
    chat.leave()
    assert "to continue" not in chat.text


def test_aborted_run_cannot_be_retried_which_is_explained(chat, turns):
    chat = chat(*turns({"text": "one", "hang_after": 0}))
    chat.say("hello")
    chat.wait_for("working")
    chat.type("\x03")
    chat.wait_for("[agent.aborted]", "]\n>")
    chat.say("/retry")
    chat.wait_for("the last run has ended; send a message to continue")
    chat.leave()


def test_interrupt_of_an_idle_chat_clears_the_line_and_shows_how_to_leave(chat, turns):
    chat = chat(*turns("yes"))
    chat.type("half a sentence")
    chat.wait_for("half a sentence")
    chat.type("\x03")
    chat.type("\x03")
    chat.wait_for("use Ctrl-D or /quit to leave")
    assert "half" not in chat.text
    chat.leave()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_terminal_is_restored_after_a_signal(chat, turns, number):
    chat = chat(*turns({"text": "one", "hang_after": 0}))
    chat.say("hello")
    chat.wait_for("working")
    chat.process.send_signal(number)
    assert chat.wait() == 143
    assert chat.is_restored()


def test_message_during_a_run_is_sent_with_the_next_step(chat, turns, gate):
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
    chat.leave()


def test_later_command_starts_another_run_after_the_current_one(chat, turns, gate):
    chat = chat("--yes", "--skill-dir", gate.folder, *turns(GATE, "first", "second"))
    chat.say("wait")
    assert gate.reached.wait(20)
    chat.say("/later and then this")
    chat.wait_for("queued")
    gate.opened.set()
    chat.wait_for("first", "second")
    chat.leave()


def test_queued_message_of_an_aborted_run_returns_to_the_prompt(chat, turns, gate):
    chat = chat("--yes", "--skill-dir", gate.folder, *turns(GATE))
    chat.say("wait")
    assert gate.reached.wait(20)
    chat.say("also this")
    chat.wait_for("queued")
    chat.type("\x03")
    chat.wait_for("aborted", "]\n> also this")
    chat.type("\x03")
    chat.leave()


@pytest.mark.parametrize(
    ("answer", "outcome"), [("y", "ok"), ("s", "ok"), ("a", "ok"), ("n later", "failed"), (CTRL_D, "failed")]
)
def test_grant_is_requested_in_the_chat(chat, turns, make_skill, answer, outcome):
    skill = make_skill("asker", ASKER, "sql:path=notes.db")
    chat = chat("--skill-dir", skill, *turns(LOOK, "done"))
    chat.say("look")
    chat.wait_for("sql:path=notes.db", "[y/s/a/N]")
    chat.type("/mode full\r")
    chat.wait_for("answer the question first")
    chat.answer("[y/s/a/N]", answer + "\r" * (answer != CTRL_D))
    chat.wait_for(outcome, "done", f"▌ Grant this? [y/s/a/N] {answer.replace(CTRL_D, 'n')}\n")
    chat.leave()


def has_done_a_call(home):
    """Return whether the outcome of a tool call is in the ledger."""
    lines = [line for file in (home / "ledger").glob("*.jsonl") for line in file.read_text().splitlines()]
    parts = ('"kind":"outcome"', '"op":"tool.call"', '"status":"done"')
    return any(all(part in line for part in parts) for line in lines)


def test_other_calls_print_nothing_between_a_question_and_its_reason(chat, turns, make_skill, hello, tmp_path):
    skill = make_skill("asker", ASKER, "sql:path=notes.db")
    calls = [*LOOK["tool_calls"], {"name": "hello__greet", "arguments": {"name": "Ada"}}]
    chat = chat("--skill-dir", skill, "--skill-dir", hello, *turns({"tool_calls": calls}, "done"))
    chat.say("look")
    chat.wait_for("[y/s/a/N]")
    deadline = time.monotonic() + 20
    while not has_done_a_call(tmp_path / "home"):
        assert time.monotonic() < deadline
    for count in range(1, 9):  # by the time it has shown these, it would have shown the outcome
        chat.type("x")
        chat.wait_for("[y/s/a/N] " + "x" * count)
    chat.type("\r")
    chat.wait_for("hello.greet name=Ada: ok", "done")
    assert "requests:\n▌   sql:path=notes.db\n▌   highest level: controlled\n▌ session or always:" in chat.text
    chat.leave()


def test_text_typed_before_a_question_does_not_answer_it_and_is_restored_afterwards(chat, turns, make_skill, gate):
    skill = make_skill("asker", ASKER, "sql:path=notes.db")
    chat = chat("--skill-dir", skill, "--skill-dir", gate.folder, *turns(GATE, LOOK, "done"))
    chat.say("look")
    chat.wait_for("http:host=127.0.0.1", "[y/s/a/N]")
    chat.type("y\r")
    assert gate.reached.wait(20)
    chat.type("y")
    chat.wait_for("> y")
    gate.opened.set()
    chat.wait_for("sql:path=notes.db")
    chat.answer("Grant this? [y/s/a/N]", "\r")
    chat.wait_for("failed", "done", "]\n> y")
    chat.type("\x03")
    chat.leave()


def test_question_of_a_guard_shows_all_arguments_and_is_not_in_the_history(chat, turns, hello, plugin, tmp_path):
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
    chat.wait_for("is this wise?", "[y/s/a/N]")
    assert "hidden" in chat.text
    chat.type("yes\r")
    chat.wait_for("ok", "done")
    chat.leave()
    assert "yes" not in (tmp_path / "home" / "history").read_text()


def test_control_characters_of_a_model_are_removed(chat, turns):
    chat = chat(*turns("\x1b[31mred\u202e \x1b]0;title\x07done"))
    chat.say("hello")
    chat.wait_for("done")
    assert b"\x1b[31m" not in chat.written
    assert b"\x1b]0;" not in chat.written
    assert "\u202e".encode() not in chat.written
    chat.leave()


def test_continued_session_offers_to_retry_its_unfinished_run(chat, turns):
    options = turns({"text": "never", "failures": [{"status": 401}]})
    first = chat(*options)
    first.say("hello")
    first.wait_for("/retry")
    first.leave()
    turns("It works now.")
    second = chat("--session", "last", *options[2:])
    second.wait_for("/retry resumes it")
    second.say("/retry")
    second.wait_for("It works now.")
    second.leave()


def test_plugin_can_end_the_chat(chat, turns, plugin):
    environment = plugin(
        "ender",
        "hook",
        "from sideband.hooks import hookimpl\n@hookimpl\ndef agent_end(event, ctx):\n    ctx.shutdown()\n",
    )
    chat = chat(*turns("bye"), **environment)
    chat.say("hello")
    assert chat.wait() == 0
    assert chat.is_restored()


def test_dumb_terminal_is_read_line_by_line(terminal, turns):
    chat = terminal("chat", *turns("one"), TERM="dumb")
    chat.wait_for("/help")
    chat.type("hello\n")
    chat.wait_for("one")
    chat.type("\x04")
    assert chat.wait() == 0
    assert b"\x1b" not in chat.written


def test_dumb_terminal_shows_no_prompt_after_quit(terminal, turns):
    chat = terminal("chat", *turns("one"), TERM="dumb")
    chat.wait_for("to leave\n>")  # input before the prompt would be echoed in front of it
    chat.type("/quit\n")
    assert chat.wait() == 0
    assert chat.text.count("> ") == 1


def test_dumb_terminal_shows_the_prompt_again_after_an_interrupt(terminal, turns):
    chat = terminal("chat", *turns("one"), TERM="dumb")
    chat.wait_for("to leave\n>")
    chat.type("\x03")
    chat.wait_for("> ^C\n▌ use Ctrl-D or /quit to leave\n>")
    chat.type("\x04")
    assert chat.wait() == 0
    assert chat.written.endswith(b"> \r\n")


def test_chat_waiting_for_a_line_exits_on_a_signal(terminal, turns):
    chat = terminal("chat", *turns("one"), TERM="dumb")
    chat.wait_for("/help")
    chat.process.send_signal(signal.SIGTERM)
    assert chat.wait() == 143


def test_piped_lines_are_answered_one_by_one(sideband, turns):
    done = sideband("chat", *turns("one", "two"), stdin="a\nb\\\nc\n/tree\n")
    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == ["one", "two"]
    assert "user: b c" in done.stdout


def test_chat_without_input_ends(sideband, turns):
    done = sideband("chat", *turns(), stdin=None)
    assert (done.returncode, done.stderr.splitlines()[1:]) == (0, ["/help for commands, Ctrl-D to leave"])


def test_warnings_appear_above_the_prompt(chat, turns):
    chat = chat("--tools", "nothing.there", *turns("yes"))
    chat.wait_for("`nothing.there`", "]\n>")
    chat.leave()
