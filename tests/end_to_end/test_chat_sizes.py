"""The chat at narrow and wide terminals, at one that changes, at a dumb one, and with much pasted text."""

import hashlib
import json

import pytest

TEXT = "# A title\n\n| name | what it is |\n|---|---|\n| one | `code` |\n\n" + "some words of an answer " * 12 + "\n"
ASKER = "from sideband.skill import tool\n@tool\nasync def look() -> int:\n    return 1\n"
END = "\n>"  # a narrow terminal shows the beginning of the status
LOOK = {"tool_calls": [{"name": "asker__look"}]}


@pytest.mark.parametrize("columns", [40, 200])
def test_each_line_fits(chat, turns, make_skill, columns):
    skill = make_skill("asker", ASKER, "sql:path=notes.db")
    chat = chat("--skill-dir", skill, *turns(LOOK, TEXT), columns=columns)
    chat.say("look")
    chat.wait_for("sql:path=notes.db", "/N]")
    chat.type("y\r")
    chat.wait_for("A title", "code", "some words", END)
    question = chat.text[chat.text.index("\u258c The tool") :].partition("\u258c * asker.look")[0].splitlines()
    assert all(line.startswith("\u258c ") for line in question)  # so none was broken by the terminal
    words = chat.text[chat.text.index("some words") :].partition("\n\u258c")[0].splitlines()
    assert {word for line in words for word in line.split()} == {"some", "words", "of", "an", "answer"}
    chat.leave()


def test_chat_follows_the_width_of_its_terminal(chat, turns):
    chat = chat(*turns("word " * 30, "word " * 30), columns=100)
    chat.say("hello")
    chat.wait_for("word " * 15, "]\n>")
    chat.resize(40)
    chat.say("again")
    chat.wait_for("> again\nword ", "· …\n>")
    assert max(len(line) for line in chat.text.rpartition("again")[2].splitlines()) <= 40
    chat.leave()


def test_pasted_megabyte_is_sent_as_it_is(chat, turns, sideband):
    pasted = "".join(f"line {number} of what was pasted\n" for number in range(36_000))
    assert len(pasted) > 1_000_000
    chat = chat(*turns("yes"))
    chat.type(f"\x1b[200~{pasted}\x1b[201~")
    chat.wait_for("line 35999")
    chat.type("\r")
    chat.wait_for("yes")
    chat.leave()
    shown = json.loads(sideband("sessions", "show", "last", "--json").stdout)
    (text,) = next(one["message"]["content"] for one in shown["entries"] if one["type"] == "message")
    assert hashlib.sha256(text["text"].encode()).digest() == hashlib.sha256(pasted.strip().encode()).digest()


def test_dumb_terminal_gets_no_sequences(terminal, turns):
    chat = terminal("chat", *turns("It is **bold**."), TERM="dumb")
    chat.wait_for("Ctrl-D to leave\n>")
    chat.type("hello\r")
    chat.wait_for("It is **bold**.")
    chat.type("\x04")
    assert chat.wait() == 0
    assert b"\x1b" not in chat.written
