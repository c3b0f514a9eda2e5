"""What a user can put into a message at a terminal: commands, files, folders and images."""

import base64
import json

import pytest

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.fixture
def sent(sideband):
    """Return the last message of the user in the last session."""

    def read():
        shown = json.loads(sideband("sessions", "show", "last", "--json").stdout)
        messages = [one["message"] for one in shown["entries"] if one["type"] == "message"]
        return [one for one in messages if one["role"] == "user"][-1]["content"]

    return read


def test_menu_shows_the_commands_with_their_summaries(chat, turns):
    chat = chat(*turns("yes"))
    chat.type("/to")
    chat.wait_for("/tools", "list the tools")
    chat.type("\t\r")
    chat.wait_for("tool ", "description")
    chat.leave()


def test_files_are_completed_and_sent(chat, turns, tmp_path, sent):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.txt").write_text("the plan\n")
    chat = chat(*turns("yes"))
    chat.type("see @no")
    chat.wait_for("notes/")
    chat.type("\tpl")
    chat.wait_for("plan.txt")
    chat.type("\t, please\r")
    chat.wait_for("> see @notes/plan.txt, please", "with notes/plan.txt", "yes")
    chat.leave()
    assert sent() == [
        {"type": "text", "text": 'see @notes/plan.txt, please\n\n<file name="plan.txt">\nthe plan\n</file>'}
    ]


def test_file_below_the_folder_is_completed_by_a_part_of_its_name(chat, turns, tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "harvest.txt").touch()
    chat = chat(*turns("yes"))
    chat.type("@rvest")
    chat.wait_for("deep/er/harvest.txt")
    chat.type("\x03")
    chat.leave()


def test_entries_of_a_folder_are_sent(chat, turns, tmp_path, sent):
    (tmp_path / "notes" / "old").mkdir(parents=True)
    (tmp_path / "notes" / "plan.txt").touch()
    chat = chat(*turns("yes"))
    chat.type("what is in @notes/")
    chat.wait_for("plan.txt")
    chat.type("?\r")
    chat.wait_for("with notes/", "yes")
    chat.leave()
    assert sent()[0]["text"].endswith('<folder name="notes/">\nold/\nplan.txt\n</folder>')


def test_word_that_names_no_file_is_sent_as_it_is(chat, turns, sent):
    chat = chat(*turns("yes"))
    chat.say("ask @ada or me@example.org")
    chat.wait_for("yes")
    chat.leave()
    assert sent() == [{"type": "text", "text": "ask @ada or me@example.org"}]


def test_file_that_cannot_be_sent_is_reported_and_the_message_kept(chat, turns, tmp_path):
    (tmp_path / "data.bin").write_bytes(b"\0\1\2")
    chat = chat(*turns("yes"))
    chat.type("see @data.bin \r")
    chat.wait_for("error: ", "data.bin", "\n> see @data.bin")
    chat.type("\x03")
    chat.leave()


def test_image_of_the_clipboard_is_sent(chat, turns, tmp_path, sent):
    (tmp_path / "image.png").write_bytes(PIXEL)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "xclip"
    program.write_text(f"#!/bin/sh\nexec cat {tmp_path}/image.png\n")
    program.chmod(0o755)
    chat = chat(*turns("yes"), PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    chat.type("what is \x16")
    chat.wait_for("> what is [image 1]")
    chat.type("\r")
    chat.wait_for("yes")
    chat.leave()
    assert sent()[1] == {"type": "image", "media_type": "image/png", "data": base64.b64encode(PIXEL).decode()}


def test_clipboard_without_an_image_is_reported(chat, turns, tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "xclip"
    program.write_text("#!/bin/sh\necho a text\n")
    program.chmod(0o755)
    chat = chat(*turns("yes"), PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    chat.type("\x16")
    chat.wait_for("the clipboard has no image")
    chat.leave()


def test_missing_program_for_the_clipboard_is_named(chat, turns, tmp_path):
    chat = chat(*turns("yes"), PATH=str(tmp_path))
    chat.type("\x16")
    chat.wait_for("to paste images, install one of wl-paste, xclip, pngpaste")
    chat.leave()


def test_earlier_input_is_found_by_a_part_of_it(chat, turns):
    chat = chat(*turns("one", "two", "three"))
    for text, reply in (("the harvest", "one"), ("something else", "two")):
        chat.say(text)
        chat.wait_for(f"> {text}", f"\n{reply}\n", "]\n>")
    chat.type("\x12harv")
    chat.wait_for("the harvest\n", "harv")
    chat.type("\r\r")
    chat.wait_for("three")
    chat.leave()
