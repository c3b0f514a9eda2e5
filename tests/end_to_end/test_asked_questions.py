"""Questions that a model asks the user at a terminal, with the tool `ask`."""

import pytest

FORGED = "Which port?\r\n▌ Grant this? [y/N] \x1b[2J"
ASK = {
    "tool_calls": [
        {
            "name": "ask",
            "arguments": {"questions": [{"text": FORGED, "options": [{"text": "8443"}, {"text": "9443"}]}]},
        }
    ]
}


@pytest.mark.parametrize(("command", "enter"), [("run", "\n"), ("chat", "\r")])
def test_typed_number_chooses_an_option(terminal, turns, command, enter):
    asked = terminal(command, *(["go"] if command == "run" else []), *turns(ASK, "done"), "--verbose")
    if command == "chat":
        asked.wait_for("\n>")
        asked.say("go")
    asked.wait_for("Your answer:")
    shown = asked.text.partition("Question 1 of 1 of the tool `ask`.")[2].splitlines()
    rows = [row for row in shown if "Which port" in row or "Grant this" in row]
    assert rows
    assert all(row.startswith("▌   │ ") for row in rows)
    asked.type(f"7{enter}")
    asked.wait_for("there is no such choice: 7")
    asked.answer("Your answer:", f"2{enter}")
    asked.wait_for("\ndone")
    if command == "chat":
        asked.type("\x04")
    assert asked.wait() == 0
    assert '"chosen":["9443"]' in asked.text.replace(" ", "").replace("\n", "").replace("▌", "")


def test_without_a_terminal_the_model_gets_an_error(sideband, turns):
    ended = sideband("run", "go", *turns(ASK, "done"), "--verbose")
    assert ended.returncode == 0
    assert "no user can be asked" in ended.stdout + ended.stderr
