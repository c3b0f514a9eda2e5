"""Questions at a terminal: the scopes of an answer, the grant that each gives, and the reason of a refusal."""

import json
import os
import pty
import subprocess
import sys

import pytest

ASKING = """
from sideband import hookimpl
from sideband.hooks import Ask


class Careful:
    @hookimpl
    def op_call(self, event):
        return Ask("Store this?") if event.op in ("blobs.put", "files.write") else None

    @hookimpl
    def tool_call(self, event):
        return Ask("Greet?") if event.tool == "hello.greet" else None


def sideband_guards():
    return [Careful]
"""
NOTES = """
from sideband.skill import blobs, tool


@tool
async def keep(text: str) -> str:
    await blobs.put(content=text)
    return text
"""
KEYS = "[y/s/a/N]"
GREET = {"tool_calls": [{"name": "hello__greet", "arguments": {"name": "Ada"}}]}


def keep(*texts):
    """Return the turn of a model that keeps texts in parallel."""
    return {"tool_calls": [{"name": "notes__keep", "arguments": {"text": text}} for text in texts]}


@pytest.fixture
def careful(plugin):
    """The environment with a guard that asks."""
    return plugin("careful", "guard", ASKING)


@pytest.fixture
def run(terminal, turns, make_skill, careful):
    """Return a function that starts a run whose model calls a skill that stores texts."""
    options = ["--skill-dir", make_skill("notes", NOTES, "blobs:mode=write"), "--grant", "notes=blobs:mode=write"]
    options += ["--mode", "full"]  # so that one guard asks

    def start(*scripted, words=("run", "keep")):
        return terminal(*words, *options, *turns(*scripted), **careful)

    return start


@pytest.mark.parametrize(("scope", "asked_again"), [("s", True), ("a", False)])
def test_answer_holds_for_its_scope(run, scope, asked_again):
    first = run(keep("a"), keep("b"), "done")
    first.wait_for(KEYS)
    first.type(f"{scope}\n")
    assert first.wait() == 0
    assert first.text.count(KEYS) == 1
    same = run("before", "before", "before", keep("c"), "done", words=["run", "keep", "--continue"])
    assert same.wait() == 0
    assert KEYS not in same.text
    new = run(keep("d"), "done")
    if asked_again:
        new.wait_for(KEYS)
        new.type("n\n")
    assert new.wait() == (3 if asked_again else 0)


def test_answer_for_the_session_ends_the_other_questions_that_its_grant_covers(run):
    asked = run(keep("a", "b", "c"), "done")
    asked.wait_for(KEYS)
    asked.type("s\n")
    assert asked.wait() == 0
    assert asked.text.count(KEYS) == 1
    assert asked.text.count(": ok, ") == 3


def test_answer_for_the_session_ends_the_other_questions_of_a_chat(run):
    chat = run(keep("a", "b", "c"), "done", words=["chat"])
    chat.wait_for("\n>")
    chat.say("keep")
    chat.wait_for(KEYS)
    chat.type("s\r")
    chat.wait_for("\ndone")
    assert chat.text.count("Store this?") == 1
    assert chat.text.count(": ok, ") == 3
    chat.type("\x04")
    assert chat.wait() == 0


def test_yes_is_for_one_effect(run):
    asked = run(keep("a"), keep("b"), "done")
    asked.wait_for('content = "a"', KEYS)
    asked.type("y\n")
    asked.wait_for('content = "b"', f"{KEYS} y")
    asked.answer(KEYS, "n\n")
    assert asked.wait() == 0
    assert "blobs.put was denied by `careful`" in " ".join(asked.text.split())


def test_grant_is_shown_in_full_before_the_answer(terminal, careful, tmp_path):
    path = tmp_path / ("long" * 40)
    asked = terminal("op", "files.write", f"path={path}", "content=x", **careful)
    asked.wait_for("[y/a/N]")
    offer = asked.text.partition("\n▌ always: ")[2].splitlines()
    asked.type("n\n")
    assert asked.wait() == 3
    rows = [row.removeprefix("▌ ").strip() for row in offer]
    assert rows[0] == "later calls of `files.write` too, whatever their other parameters,"
    shown = "".join(rows[2 : rows.index("y = once, a = always, n or n REASON = no")])
    assert shown == f"files:hidden=no,mode=write,path={path},place=system"


BACKGROUND = """
import fcntl, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.exit(subprocess.run(sys.argv[1:], process_group=0).returncode)
"""


def test_command_in_the_background_of_a_terminal_does_not_wait_for_an_answer(tmp_path, careful):
    master, inside = pty.openpty()
    home = {"HOME": str(tmp_path), "SIDEBAND_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    program = [
        sys.executable,
        "-c",
        BACKGROUND,
        sys.executable,
        "-m",
        "sideband",
        "op",
        "blobs.put",
        "content=a",
        "--json",
    ]
    streams = {"stdin": inside, "stdout": subprocess.PIPE, "stderr": inside}
    with subprocess.Popen(program, **streams, env={**home, **careful}, start_new_session=True) as running:
        try:
            printed, _ = running.communicate(timeout=60)
        finally:
            running.kill()
            os.close(master)
            os.close(inside)
    assert running.returncode == 3
    assert json.loads(printed)["error"]["code"] == "approval.needed"


@pytest.mark.parametrize("typed", ["\n", "\x04", "maybe\n", "yes please\n", "always s\n"])
def test_whatever_is_not_one_of_the_keys_is_a_no(terminal, turns, hello, careful, typed):
    run = terminal("run", "greet", "--skill-dir", hello, *turns(GREET, "done"), **careful)
    run.wait_for(KEYS)
    run.type(typed)
    assert run.wait() == 3
    assert "it was not approved: Greet?" in " ".join(run.text.split())


def test_scope_that_is_not_offered_is_a_no(terminal, careful):
    asked = terminal("op", "blobs.put", "content=a", **careful)
    asked.wait_for("always: later calls of `blobs.put` too", "y = once, a = always", "[y/a/N]")
    asked.type("s\n")
    assert asked.wait() == 3


def test_reason_of_a_refusal_reaches_the_model_and_the_record(terminal, sideband, turns, hello, careful):
    run = terminal("run", "greet", "--skill-dir", hello, *turns(GREET, "done"), **careful)
    run.wait_for(KEYS)
    run.type("n, use the formal one\n")
    assert run.wait() == 3
    assert "not approved (use the formal one): Greet?" in sideband("sessions", "show", "last").stdout
    (call,) = json.loads(sideband("audit", "query", "--op", "tool.call", "--json").stdout)
    answer = call["entries"][0]["decisions"][-1]
    assert answer["note"] == "use the formal one"
    assert answer["by"].endswith("(terminal)")


def test_model_sees_why_a_grant_was_refused(terminal, sideband, turns, make_skill):
    skill = make_skill("notes", NOTES, "blobs:mode=write")
    run = terminal("run", "keep", "--skill-dir", skill, *turns(keep("a"), "done"))
    run.wait_for("Grant this?", KEYS)
    run.type("no not this one\n")
    assert run.wait() == 3
    seen = " ".join(sideband("sessions", "show", "last").stdout.split())
    assert "the user refused to grant (not this one): blobs:mode=write" in seen
