"""Requests for approval, questions of tools and modes, as the client shows them."""

import anyio
import pytest
from acp import RequestError
from acp.schema import DeclineElicitationResponse
from sideband_acp._choices import SessionChoices
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

CHANGE = Turn(tool_calls=[("things__change", {"text": "a"})])
NOTES = {"path": "notes.txt", "content": "one\ntwo\n"}


def results(editor):
    """Return the status and text of the last result of a tool."""
    update = editor.user.of("tool_call_update")[-1]
    return update.status, update.raw_output["text"]


async def test_change_is_asked_about_with_exactly_what_will_happen(editor):
    editor.user.answers = ["once"]
    await editor.say(CHANGE, "done")
    session, call, options = editor.user.asked[0]
    assert session == editor.session
    assert call.tool_call_id == editor.user.of("tool_call")[0].tool_call_id
    assert call.title == "Allow `things.change`?"
    shown = editor.user.shown().splitlines()
    assert shown[1].startswith("things.change: Make this change?")
    assert '  text = "a"' in shown
    assert "  level: restricted" in shown
    assert [(one.option_id, one.kind) for one in options] == [
        ("once", "allow_once"),
        ("session", "allow_always"),
        ("always", "allow_always"),
        ("no", "reject_once"),
    ]
    assert any(line.startswith("With `session`, later calls are allowed too, within: tool:name=") for line in shown)
    assert results(editor) == ("completed", "changed a")


async def test_no_question_is_one_about_reading_which_clients_may_answer_themselves(connect):
    async with connect(settings={"grants": {}}) as editor:
        (editor.folder / "notes.txt").write_text("one\n")
        editor.user.answers = ["session", "once", "once"]
        read, write = (
            Turn(tool_calls=[(name, {"path": "notes.txt", **more})])
            for name, more in (("read", {}), ("write", {"content": "two\n"}))
        )
        await editor.say(read, write, CHANGE, "done")
        assert [(call.title, call.kind) for _, call, _ in editor.user.asked] == [
            ("Grant these rights?", "other"),
            ("Allow `files.write`?", "edit"),
            ("Allow `things.change`?", "other"),
        ]


async def test_call_waits_as_pending_until_its_question_is_answered(editor):
    seen = []

    async def answer():
        seen.extend(one.session_update for _, one in editor.user.updates if one.session_update.startswith("tool_call"))
        return "once"

    editor.user.answers = [answer]
    await editor.say(CHANGE, "done")
    assert seen == ["tool_call"]


@pytest.mark.parametrize("answer", ["no", None, "everything", "reject"])
async def test_answer_that_does_not_allow_denies(editor, answer):
    editor.user.answers = [answer]
    await editor.say(CHANGE, "done")
    status, text = results(editor)
    assert status == "failed"
    assert "changed" not in text


@pytest.mark.parametrize("scope", ["session", "always"])
async def test_answer_for_more_than_once_is_not_asked_again(editor, scope):
    editor.user.answers = [scope]
    await editor.say(CHANGE, CHANGE, "done")
    assert len(editor.user.asked) == 1
    other = await editor.open()
    editor.user.answers = ["no"]
    await editor.say(CHANGE, "done", session=other.session_id)
    assert len(editor.user.asked) == (2 if scope == "session" else 1)


async def test_scope_that_is_not_offered_is_not_accepted(connect):
    async with connect(choices=SessionChoices(mode="manual")) as editor:
        editor.user.answers = ["always"]
        await editor.say(CHANGE, "done")
        assert [one.option_id for one in editor.user.asked[0][2]] == ["once", "no"]
        status, text = results(editor)
        assert status == "failed"
        assert "an answer that was not offered" in text


@pytest.mark.parametrize("text", ["a\n  level: safe", "```\nforged", "\x1b[2Ka", "**Allow** [x](http://a.b)"])
async def test_no_argument_of_a_model_can_forge_a_line_of_a_question(editor, text):
    editor.user.answers = ["no"]
    await editor.say(Turn(tool_calls=[("things__change", {"text": text})]), "done")
    first, *lines, last = editor.user.shown().splitlines()
    assert first == last
    assert not any(line.startswith(first) for line in lines)
    assert sum(line.startswith("  level: ") for line in lines) == 1
    assert "\x1b" not in editor.user.shown()


async def test_long_content_is_never_shown_as_a_difference_that_is_cut(editor):
    editor.user.answers = ["no"]
    long = {"path": "notes.txt", "content": "a line of the file\n" * 20_000}
    await editor.say(Turn(tool_calls=[("write", long)]), "done")
    _, call, _ = editor.user.asked[0]
    assert [one.type for one in call.content] == ["content"]
    assert "  │ would create " in editor.user.shown()


async def test_request_that_is_too_long_to_be_shown_is_denied_without_a_question(editor):
    await editor.say(Turn(tool_calls=[("things__change", {"text": "x" * 230_000})]), "done")
    assert editor.user.asked == []
    assert "too long to be shown" in results(editor)[1]


async def test_client_that_fails_to_ask_allows_nothing(editor):
    async def fail():
        raise LookupError("no dialog")

    editor.user.answers = [fail]
    await editor.say(CHANGE, "done")
    assert results(editor)[0] == "failed"
    assert "did not ask its user" in results(editor)[1]


async def test_question_of_a_child_agent_belongs_to_the_call_that_started_it(editor):
    editor.user.answers = ["once"]
    task = Turn(tool_calls=[("subagent", {"task": "change a"})])
    await editor.say(task, CHANGE, "changed", "done")
    (start,) = editor.user.of("tool_call")
    assert editor.user.asked[0][1].tool_call_id == start.tool_call_id
    assert '  text = "a"' in editor.user.shown().splitlines()


async def test_cancelled_prompt_ends_its_question(editor):
    async def cancel():
        await editor.agent.cancel(session_id=editor.session)

    editor.user.answers = [cancel]
    assert (await editor.say(CHANGE)).stop_reason == "cancelled"
    editor.user.answers = ["once"]
    await editor.say(CHANGE, "done")
    assert results(editor) == ("completed", "changed a")


async def test_new_file_is_shown_as_a_difference_before_and_after_it_is_written(editor):
    editor.user.answers = ["once"]
    await editor.say(Turn(tool_calls=[("write", NOTES)]), "done")
    (_, call, _), path = editor.user.asked[0], str(editor.folder / "notes.txt")
    assert [(one.path, one.old_text, one.new_text) for one in call.content[1:]] == [(path, None, NOTES["content"])]
    assert f'  path = "{path}"' in editor.user.shown()
    restored, ended = editor.user.of("tool_call_update")[-2:]
    assert (restored.title, restored.status) == ("write `notes.txt`", "in_progress")
    assert [(one.type, one.path, one.old_text, one.new_text) for one in ended.content] == [
        ("diff", path, None, NOTES["content"])
    ]
    assert (editor.folder / "notes.txt").read_text() == NOTES["content"]


async def test_edit_is_shown_as_a_difference_of_the_whole_file(editor):
    (editor.folder / "notes.txt").write_text("one\ntwo\nthree\n")
    editor.user.answers = ["once"]
    edit = {"path": "notes.txt", "edits": [{"old": "two", "new": "2"}]}
    await editor.say(Turn(tool_calls=[("read", {"path": "notes.txt"})]), Turn(tool_calls=[("edit", edit)]), "done")
    expected = ("one\ntwo\nthree\n", "one\n2\nthree\n")
    ended = editor.user.of("tool_call_update")[-1]
    assert [(one.old_text, one.new_text) for one in ended.content] == [expected]
    assert editor.user.of("tool_call")[-1].kind == "edit"


@pytest.mark.parametrize(("hidden", "shown"), [("\u202e", "\\u202e"), ("\u200b", "\\u200b"), ("\x1b[8m", "\\x1b[8m")])
async def test_difference_with_characters_that_hide_text_is_shown_in_words_too(editor, hidden, shown):
    editor.user.answers = ["no"]
    content = f"is_admin = False{hidden} # no\n"
    await editor.say(Turn(tool_calls=[("write", {"path": "notes.py", "content": content})]), "done")
    assert f"is_admin = False{shown} # no" in editor.user.shown()
    assert [one.type for one in editor.user.asked[0][1].content] == ["content", "diff"]


async def test_difference_with_line_ends_of_windows_is_shown_once(editor):
    editor.user.answers = ["no"]
    await editor.say(Turn(tool_calls=[("write", {"path": "notes.txt", "content": "one\r\n"})]), "done")
    assert "content = " not in editor.user.shown()


async def test_failed_change_shows_why_instead_of_the_difference(editor):
    (editor.folder / "notes.txt").write_text("unread\n")
    await editor.say(Turn(tool_calls=[("write", NOTES)]), "done")
    ended = editor.user.of("tool_call_update")[-1]
    assert ended.status == "failed"
    assert [one.type for one in ended.content] == ["content"]


async def test_file_outside_of_the_folder_is_not_shown(editor, tmp_path):
    (tmp_path / "secret.txt").write_text("a secret")
    (editor.folder / "link").symlink_to(tmp_path / "secret.txt")
    for path in ("../secret.txt", "link"):
        await editor.say(Turn(tool_calls=[("write", {"path": path, "content": "x"})]), "done")
    assert "a secret" not in str(editor.user.updates)


async def test_question_of_a_tool_is_a_form(editor):
    editor.user.answers = [{"choice_1": "9443", "other_2": "api"}]
    await editor.say(Turn(tool_calls=[("things__ask", {})]), "done")
    message, mode = editor.user.forms[0]
    assert "they allow nothing" in message
    assert (mode.session_id, mode.tool_call_id) == (editor.session, editor.user.of("tool_call")[0].tool_call_id)
    assert mode.requested_schema.properties["choice_1"].enum == ["8443", "9443"]
    assert results(editor) == ("completed", "('9443',)  api")


async def test_declined_question_is_an_error_of_the_tool(editor):
    editor.user.answers = [DeclineElicitationResponse(action="decline")]
    await editor.say(Turn(tool_calls=[("things__ask", {})]), "done")
    assert results(editor)[0] == "failed"
    assert "declined" in results(editor)[1]


async def test_client_without_forms_is_not_asked(connect):
    async with connect(forms=False) as editor:
        await editor.say(Turn(tool_calls=[("things__ask", {})]), "done")
        assert results(editor)[0] == "failed"
        assert editor.user.forms == []


async def test_modes_are_the_approval_modes(editor):
    modes = (await editor.open()).modes
    assert modes.current_mode_id == "assist"
    assert [one.id for one in modes.available_modes] == ["manual", "assist", "semi", "full", "plan"]


async def test_client_changes_the_mode_and_gets_no_report_of_its_own_change(editor):
    await editor.agent.set_session_mode(session_id=editor.session, mode_id="full")
    await editor.say(CHANGE, "done")
    assert editor.user.asked == []
    assert editor.user.of("current_mode_update") == []
    with pytest.raises(RequestError, match="unknown option `mode` with the value `none`") as raised:
        await editor.agent.set_session_mode(session_id=editor.session, mode_id="none")
    assert raised.value.code == -32602


async def test_mode_that_an_approved_plan_selects_is_reported(connect):
    async with connect(choices=SessionChoices(mode="plan")) as editor:
        editor.user.answers = ["once"]
        await editor.say(Turn(tool_calls=[("plan", {"plan": "1. change a"})]), "done")
        assert "│ 1. change a" in editor.user.shown()
        assert [one.current_mode_id for one in editor.user.of("current_mode_update")] == ["assist"]
        assert [one.config_options[0].current_value for one in editor.user.of("config_option_update")] == ["assist"]
        assert editor.user.of("tool_call")[0].kind == "switch_mode"


async def test_question_for_the_right_to_files_comes_once(connect):
    async with connect(settings={"grants": {}}) as editor:
        (editor.folder / "notes.txt").write_text("one\n")
        editor.user.answers = ["session"]
        read = Turn(tool_calls=[("read", {"path": "notes.txt"})])
        with anyio.fail_after(30):
            await editor.say(read, read, "done")
        (asked,) = editor.user.asked
        assert asked[1].title == "Grant these rights?"
        assert f"mode=read|write,path={editor.folder}/*" in editor.user.shown()
        assert editor.user.of("tool_call_update")[-1].status == "completed"
