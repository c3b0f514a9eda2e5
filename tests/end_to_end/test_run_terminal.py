"""``sideband run`` at a terminal: streamed text, interrupts and questions."""

import re

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


def test_answer_is_shown_once_and_tool_calls_on_their_own_lines(terminal, turns, hello):
    run = terminal("run", "greet Ada", "--skill-dir", hello, *turns(GREETS, "It said hello."))
    assert run.wait() == 0
    lines = run.text.splitlines()
    assert lines.count("It said hello.") == 1
    assert lines.index("Let me see.") < next(i for i, line in enumerate(lines) if line.startswith("▌ * hello.greet"))


def test_grant_can_be_declined_at_the_terminal(terminal, turns, make_skill):
    code = "from sideband.skill import tool\n@tool\nasync def look() -> int:\n    return 1\n"
    skill = make_skill("modest", code, "sql:path=notes.db")
    run = terminal("run", "look", "--skill-dir", skill, *turns({"tool_calls": [{"name": "modest__look"}]}, "done"))
    run.wait_for("sql:path=notes.db", "[y/N]")
    run.type("n\n")
    assert run.wait() == 0
    assert re.search(r"^▌ \* modest\.look$\n▌   failed: ", run.text, re.MULTILINE)
    assert "--grant" in run.text.replace("\n▌   ", " ")


def test_no_color_variable_turns_colors_off(terminal, turns, hello):
    options = ["--skill-dir", hello, *turns(GREETS, "done")]
    colored = terminal("run", "greet", *options)
    colored.wait()
    plain = terminal("run", "greet", *options, NO_COLOR="1")
    plain.wait()
    assert b"\x1b[2m" in colored.written
    assert b"\x1b[" not in plain.written


def test_killed_run_resumes_without_repeating_an_effect_of_unknown_outcome(terminal, sideband, turns, gate):
    options = ["--yes", "--skill-dir", gate.folder, *turns({"tool_calls": [{"name": "gate__wait"}]}, "Done.")]
    killed = terminal("run", "wait", *options)
    assert gate.reached.wait(20)
    killed.process.kill()
    killed.process.wait()
    gate.reached.clear()
    done = sideband("run", "--resume", *options)
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert "* gate.wait\n  outcome unknown: " in done.stderr
    assert not gate.reached.is_set()
