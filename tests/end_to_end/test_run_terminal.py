"""``sideband run`` with a person before it: text as it comes, interrupts, questions."""

import re

GREETS = {"text": "Let me see.", "tool_calls": [{"name": "hello__greet", "arguments": {"name": "Ada"}}]}


def test_text_appears_as_it_comes_and_an_interrupt_ends_the_run(terminal, turns):
    run = terminal("run", "hello", *turns({"text": "one two three four", "hang_after": 2}))
    run.wait_for("one")
    run.type("\x03")
    run.wait_for("ending the run", "aborted")
    assert run.wait() == 130
    assert re.search(r"^ending the run", run.text, re.MULTILINE)


def test_a_second_interrupt_leaves_at_once(terminal, turns, gate):
    run = terminal(
        "run", "hello", "--yes", "--skill-dir", gate.folder, *turns({"tool_calls": [{"name": "gate__wait"}]})
    )
    assert gate.reached.wait(20)
    run.type("\x03\x03")
    assert run.wait() == 130


def test_an_answer_is_shown_once_and_the_line_of_a_tool_has_a_line_of_its_own(terminal, turns, hello):
    run = terminal("run", "greet Ada", "--skill-dir", hello, *turns(GREETS, "It said hello."))
    assert run.wait() == 0
    lines = run.text.splitlines()
    assert lines.count("It said hello.") == 1
    assert lines.index("Let me see.") < next(i for i, line in enumerate(lines) if line.startswith("* hello.greet"))


def test_a_person_is_asked_for_rights_and_can_refuse(terminal, turns, make_skill):
    code = "from sideband.skill import tool\n@tool\nasync def look() -> int:\n    return 1\n"
    skill = make_skill("modest", code, "sql:path=notes.db")
    run = terminal("run", "look", "--skill-dir", skill, *turns({"tool_calls": [{"name": "modest__look"}]}, "done"))
    run.wait_for("sql:path=notes.db", "[y/N]")
    run.type("n\n")
    assert run.wait() == 0
    assert re.search(r"^\* modest\.look$\n  failed: ", run.text, re.MULTILINE)
    assert "--grant" in run.text.replace("\n  ", " ")


def test_no_colour_is_shown_where_none_is_wanted(terminal, turns, hello):
    options = ["--skill-dir", hello, *turns(GREETS, "done")]
    coloured = terminal("run", "greet", *options)
    coloured.wait()
    plain = terminal("run", "greet", *options, NO_COLOR="1")
    plain.wait()
    assert b"\x1b[2m" in coloured.written
    assert b"\x1b[" not in plain.written


def test_a_run_that_was_killed_goes_on_and_does_not_do_again_what_may_have_been_done(terminal, sideband, turns, gate):
    options = ["--yes", "--skill-dir", gate.folder, *turns({"tool_calls": [{"name": "gate__wait"}]}, "Done.")]
    killed = terminal("run", "wait", *options)
    assert gate.reached.wait(20)
    killed.process.kill()
    killed.process.wait()
    gate.reached.clear()
    done = sideband("run", "--resume", *options)
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert "* gate.wait\n  not known: " in done.stderr
    assert not gate.reached.is_set()
