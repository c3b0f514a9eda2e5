"""``sideband run`` at a terminal: streamed text, interrupts and questions."""

import json
import re
import signal

import pytest

GREETS = {"text": "Let me see.", "tool_calls": [{"name": "hello__greet", "arguments": {"name": "Ada"}}]}


def test_text_is_streamed_and_an_interrupt_aborts_the_run(terminal, turns):
    run = terminal("run", "hello", *turns({"text": "one two three four", "hang_after": 2}))
    run.wait_for("one")
    run.type("\x03")
    run.wait_for("aborting the run", "aborted")
    assert run.wait() == 130
    assert re.search(r"^▌ aborting the run", run.text, re.MULTILINE)


def test_second_interrupt_exits_immediately(terminal, turns, gate):
    run = terminal(
        "run", "hello", "--yes", "--skill-dir", gate.folder, *turns({"tool_calls": [{"name": "gate__wait"}]})
    )
    assert gate.reached.wait(20)
    run.type("\x03\x03")
    assert run.wait() == 130


@pytest.mark.parametrize("words", [[], ["-v"]])
def test_answer_is_shown_once_and_tool_calls_on_their_own_lines(terminal, turns, hello, words):
    run = terminal("run", "greet Ada", *words, "--skill-dir", hello, *turns(GREETS, "It said hello."))
    assert run.wait() == 0
    lines = run.text.splitlines()
    assert lines.count("It said hello.") == 1
    assert lines.index("Let me see.") < next(i for i, line in enumerate(lines) if line.startswith("▌ * hello.greet"))


def test_grant_can_be_declined_at_the_terminal(terminal, turns, make_skill):
    code = "from sideband.skill import tool\n@tool\nasync def look() -> int:\n    return 1\n"
    skill = make_skill("modest", code, "sql:path=notes.db")
    run = terminal("run", "look", "--skill-dir", skill, *turns({"tool_calls": [{"name": "modest__look"}]}, "done"))
    run.wait_for("sql:path=notes.db", "[y/s/a/N]")
    run.type("n\n")
    assert run.wait() == 3
    assert re.search(r"^▌ \* modest\.look$\n▌   failed: ", run.text, re.MULTILINE)
    assert "--grant 'modest=sql:path=notes.db'" in run.text.replace("\n", "")


def test_no_color_variable_turns_colors_off(terminal, turns, hello):
    options = ["--skill-dir", hello, *turns(GREETS, "done")]
    colored = terminal("run", "greet", *options)
    colored.wait()
    plain = terminal("run", "greet", *options, NO_COLOR="1")
    plain.wait()
    assert b"\x1b[2m" in colored.written
    assert b"\x1b[" not in plain.written


@pytest.fixture
def resume_killed(terminal, sideband, turns, gate):
    """Return a function that kills a run during a call of a tool of the gate, and returns the run that resumes it."""

    def resume(tool):
        options = ["--yes", "--skill-dir", gate.folder, *turns({"tool_calls": [{"name": f"gate__{tool}"}]}, "Done.")]
        killed = terminal("run", "wait", *options)
        assert gate.reached.wait(20)
        killed.process.kill()
        killed.process.wait()
        gate.reached.clear()
        gate.opened.set()
        done = sideband("run", "--resume", *options)
        assert (done.returncode, done.stdout) == (0, "Done.\n")
        return " ".join(done.stderr.split())

    return resume


def test_killed_run_resumes_without_repeating_an_effect_of_unknown_outcome(resume_killed, gate):
    shown = resume_killed("change")
    assert "* gate.change failed: gate.change was interrupted and could not be completed, because the outcome" in shown
    assert not gate.reached.is_set()


def test_killed_run_resumes_and_repeats_a_read(resume_killed, gate):
    assert "* gate.wait: ok" in resume_killed("wait")
    assert gate.reached.is_set()


MODEST = "from sideband.skill import tool\n@tool\nasync def look() -> int:\n    return 1\n"
LOOK = {"name": "modest__look"}


def test_parallel_calls_ask_one_question_that_nothing_overwrites(terminal, turns, make_skill, hello):
    skill = make_skill("modest", MODEST, "sql:path=notes.db")
    calls = [LOOK, {"name": "hello__greet", "arguments": {"name": "Ada"}}, LOOK]
    folders = ["--skill-dir", skill, "--skill-dir", hello]
    run = terminal("run", "look", *folders, *turns({"tool_calls": calls}, "done"))
    run.wait_for("[y/s/a/N]")
    assert "The tool `modest.look` of the skill `modest`" in run.text
    run.type("s\n")
    assert run.wait() == 0
    assert run.text.count("[y/s/a/N]") == 1
    assert "▌ Grant this? [y/s/a/N] s" in run.text.splitlines()
    assert len(re.findall(r"^▌ \* (?:modest\.look|hello\.greet name=Ada): ok", run.text, re.MULTILINE)) == 3


def test_text_typed_before_a_question_does_not_answer_it(terminal, turns, make_skill, gate):
    skill = make_skill("modest", MODEST, "sql:path=notes.db")
    folders = ["--skill-dir", skill, "--skill-dir", gate.folder]
    words = [
        "--grant",
        "gate=http:host=127.0.0.1",
        *turns({"tool_calls": [{"name": "gate__wait"}]}, {"tool_calls": [LOOK]}, "done"),
    ]
    run = terminal("run", "look", *folders, *words)
    assert gate.reached.wait(20)
    run.type("y\n")
    run.wait_for("gate.waity")
    gate.opened.set()
    run.wait_for("[y/s/a/N]")
    run.type("n\n")
    assert run.wait() == 0
    assert "the user refused to grant" in " ".join(run.text.replace("▌", "").split())  # it may be in two rows


def test_message_does_not_continue_the_progress_line(terminal, turns, make_skill):
    skill = make_skill("modest", MODEST, "sql:path=notes.db")
    run = terminal("run", "look", "--yes", "--skill-dir", skill, *turns({"tool_calls": [LOOK]}, "done"))
    assert run.wait() == 0
    assert "▌ granted to `modest`: sql:path=notes.db" in run.text.splitlines()


def test_aborted_run_shows_the_stopped_tool_and_how_to_continue(terminal, sideband, turns, gate):
    options = ["--yes", "--skill-dir", gate.folder, *turns({"tool_calls": [{"name": "gate__wait"}]}, "Done.")]
    run = terminal("run", "wait", *options)
    assert gate.reached.wait(20)
    run.type("\x03")
    assert run.wait() == 130
    assert "▌ * gate.wait: stopped, may have been executed in part" in run.text
    session = re.search(r'^▌ to continue: sideband run --session (\w+) "…"$', run.text, re.MULTILINE)[1]
    assert sideband("run", "go on", "--session", session, *options).stdout == "Done.\n"


@pytest.mark.parametrize("words", [["run", "wait"], ["call", "gate.wait"]], ids=["run", "call"])
def test_termination_signal_ends_a_command_and_records_its_effects(terminal, sideband, turns, gate, words):
    model = turns({"tool_calls": [{"name": "gate__wait"}]}, "Done.") if words[0] == "run" else []
    command = terminal(*words, "--yes", "--skill-dir", gate.folder, *model)
    assert gate.reached.wait(20)
    command.process.send_signal(signal.SIGTERM)
    assert command.wait() == 143
    effects = json.loads(sideband("audit", "query", "--op", "http.get", "--json").stdout)
    assert [effect["status"] for effect in effects] == ["cancelled"]


def test_second_termination_signal_exits_immediately(terminal, turns, gate):
    model = turns({"tool_calls": [{"name": "gate__wait"}]})
    run = terminal("run", "wait", "--yes", "--skill-dir", gate.folder, *model)
    assert gate.reached.wait(20)
    run.process.send_signal(signal.SIGTERM)
    run.process.send_signal(signal.SIGTERM)
    assert run.wait() == 143


def test_interrupt_at_a_question_in_a_chat_aborts_the_run_and_leaves_no_line_behind(terminal, turns, make_skill):
    skill = make_skill("modest", MODEST, "sql:path=notes.db")
    chat = terminal("chat", "--skill-dir", skill, *turns({"tool_calls": [LOOK]}, "done"))
    chat.wait_for("\n>")
    chat.say("look")
    chat.wait_for("[y/s/a/N]")
    chat.type("\x03")
    chat.wait_for("[y/s/a/N] n", "aborted: interrupted")
    chat.wait_for("\n>")
    assert "Exception" not in chat.text
    assert "modest.look" not in chat.text.rpartition("aborted: interrupted")[2]
    chat.type("\x04")
    assert chat.wait() == 0


def test_line_of_a_stopped_tool_does_not_stay_above_the_prompt_of_a_chat(terminal, turns, gate):
    options = ["--yes", "--skill-dir", gate.folder, *turns({"tool_calls": [{"name": "gate__wait"}]}, "Done.")]
    chat = terminal("chat", *options)
    chat.wait_for("\n>")
    chat.say("go")
    assert gate.reached.wait(20)
    chat.type("\x03")
    chat.wait_for("* gate.wait: stopped", "aborted: interrupted")
    chat.wait_for("\n>")
    assert "gate.wait" not in chat.text.rpartition("aborted: interrupted")[2]
