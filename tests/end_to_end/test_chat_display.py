"""What a chat at a terminal shows beside the conversation: styles, the status, the title, the bell, earlier turns."""


def test_markdown_is_shown_with_styles(chat, turns):
    chat = chat(*turns("# Title\n\nIt is **bold**.\n"))
    chat.say("hello")
    chat.wait_for("\nTitle\n", "It is bold.")
    assert b"\x1b[1mbold\x1b[0m" in chat.written
    chat.leave()


def test_markdown_is_shown_as_it_is_without_colors(chat, turns):
    chat = chat(*turns("It is **bold**.\n"), NO_COLOR="1")
    chat.say("hello")
    chat.wait_for("It is **bold**.")
    chat.leave()


def test_status_shows_how_long_the_run_takes_and_what_it_waits_for(chat, turns, gate):
    chat = chat("--skill-dir", gate.folder, "--yes", *turns({"tool_calls": [{"name": "gate__wait"}]}, "done"))
    chat.say("go")
    assert gate.reached.wait(20)
    chat.wait_for("]\n▌ working", "s, waiting for gate.wait; Esc or Ctrl-C to abort\n>")
    gate.opened.set()
    chat.wait_for("done", "]\n>")
    chat.leave()


def test_escape_aborts_the_run(chat, turns):
    chat = chat(*turns({"text": "word " * 40, "hang_after": 30}))
    chat.say("hello")
    chat.wait_for("waiting for the model")
    chat.type("\x1b")
    chat.wait_for("aborted")
    chat.leave()


def test_escape_answers_a_question_with_no_and_the_bell_rings_for_it(chat, turns, gate):
    chat = chat("--skill-dir", gate.folder, *turns({"tool_calls": [{"name": "gate__wait"}]}, "done"))
    chat.say("go")
    chat.wait_for("[y/s/a/N]")
    assert b"\x07" in chat.written.rpartition(b"2;")[2].partition(b"\x07")[2]  # one that does not end a title
    chat.type("\x1b")
    chat.wait_for("[y/s/a/N] n", "done")
    chat.leave()


def test_title_names_the_session_and_is_cleared_at_the_end(chat, turns):
    chat = chat(*turns("yes"))
    chat.say("/name harvest")
    chat.wait_for("harvest", "\n> ")
    chat.say("hello")
    chat.wait_for("yes")
    assert b"\x1b]2;harvest - sideband\x07" in chat.written
    chat.leave()
    assert chat.written.rindex(b"\x1b]2;\x07") > chat.written.rindex(b"harvest - sideband")


def test_last_turns_are_shown_when_a_session_is_continued(chat, turns):
    first = chat(*turns("one **answer**", "second"))
    first.say("first question")
    first.wait_for("one answer")
    first.leave()
    again = chat("--continue", *turns("third"))
    again.wait_for("> first question", "one answer")
    again.leave()


STATUS = """
from sideband.hooks import hookimpl

@hookimpl
def status_line(event, ctx):
    return [f"{len(ctx.session.messages())} messages \\x1b[2J"]
"""


def test_status_shows_what_a_plugin_adds(chat, turns, plugin):
    chat = chat(*turns("one"), **plugin("counting", "hook", STATUS))
    chat.wait_for("mode assist \u00b7 0 messages \\x1b[2J]")
    chat.say("hello")
    chat.wait_for("mode assist \u00b7 2 messages \\x1b[2J]\n>")
    chat.leave()


def test_long_rows_of_messages_all_have_the_mark(chat, turns):
    chat = chat(*turns("yes"), columns=40)
    chat.say("a message with more words than a narrow terminal shows in a row")
    chat.wait_for("yes")
    chat.say("/model nope")
    chat.wait_for("[model.unknown]")
    assert "▌ > a message with more words than a\n▌   narrow terminal shows in a row\n" in chat.text
    chat.leave()


def test_output_of_tools_that_is_unfolded_has_the_mark_in_each_row(chat, turns, make_skill):
    code = "from sideband.skill import tool\n@tool\nasync def look() -> str:\n    return 'word ' * 40\n"
    skill = make_skill("long", code)
    chat = chat("--skill-dir", skill, *turns({"tool_calls": [{"name": "long__look"}]}, "done"))
    chat.say("look")
    chat.wait_for("done", "]\n>")
    chat.type("\x0f")
    chat.wait_for("result:", "word word")
    shown = chat.text[chat.text.index("result:") :].partition("\n▌ [scripted")[0].splitlines()[1:]
    assert len(shown) > 1
    assert all(row.startswith("▌     ") for row in shown)
    chat.leave()


def test_running_program_is_shown_until_it_ends(chat, turns, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    chat = chat(*turns("yes"), folder=work)
    chat.say("!sleep 60")
    chat.wait_for("▌ !sleep; Ctrl-C to stop")
    chat.type("\x03")
    chat.wait_for("▌ !sleep was interrupted", "]\n>")
    assert "to stop" not in chat.text
    chat.leave()
