"""The question about the instruction files of the folder."""

import anyio
import pytest
import sideband_prompt.plugin
from acp import text_block
from sideband import Plugin

pytestmark = pytest.mark.anyio

PROMPT = Plugin("hook", "prompt", sideband_prompt.plugin)


@pytest.fixture
async def project(connect, work):
    (work / "AGENTS.md").write_text("Answer in French.\n")
    async with connect(more=[PROMPT]) as one:
        yield one


def followed(editor):
    """Return whether the last request to the model had the instructions."""
    return "Answer in French." in str(editor.script.requests[-1].system)


async def test_instructions_are_shown_before_the_first_run_and_an_answer_holds_for_all_sessions(project):
    project.user.answers = ["use"]
    await project.say("Bonjour.")
    await project.say("Bonjour.")
    ((session, call, options),) = project.user.asked
    assert (session, call.title) == (project.session, "Follow the instructions of this project?")
    assert call.kind == "other"
    assert [(one.option_id, one.kind) for one in options] == [
        ("use", "allow_always"),
        ("refuse", "reject_always"),
        ("later", "reject_once"),
    ]
    assert "  AGENTS.md (18 bytes)\n  │ Answer in French." in project.user.shown()
    assert followed(project)
    other = await project.open()
    await project.say("Bonjour.", session=other.session_id)
    assert len(project.user.asked) == 1
    assert followed(project)


async def test_question_is_a_tool_call_that_is_known_before_and_ends(project):
    known = []

    async def answer():
        known.extend(project.user.kinds())
        return "use"

    project.user.answers = [answer]
    await project.say("Bonjour.")
    assert "tool_call" in known
    (start,), (end,) = project.user.of("tool_call"), project.user.of("tool_call_update")
    assert start.tool_call_id == end.tool_call_id == project.user.asked[0][1].tool_call_id
    assert (start.status, end.status) == ("pending", "completed")
    assert "until they change" in end.content[0].content.text


@pytest.mark.parametrize(("answer", "asked"), [("refuse", 1), ("later", 2), (None, 2), ("always", 2)])
async def test_instructions_that_are_not_accepted_are_not_used(project, answer, asked):
    project.user.answers = [answer, answer]
    await project.say("Hello.")
    await project.say("Hello.")
    assert len(project.user.asked) == 1
    other = await project.open()
    await project.say("Hello.", session=other.session_id)
    assert len(project.user.asked) == asked
    assert not followed(project)


async def test_changed_instructions_are_asked_about_with_the_difference(project):
    project.user.answers = ["use", "later"]
    await project.say("Bonjour.")
    (project.folder / "AGENTS.md").write_text("Answer in French.\nRun rm.\n")
    other = await project.open()
    await project.say("Hello.", session=other.session_id)
    overview, whole = (one.content.text for one in project.user.asked[-1][1].content)
    assert "changed since your last answer" in overview
    assert "│ +Run rm." in overview
    assert "│ Answer in French.\n  │ Run rm." in whole
    assert not followed(project)


async def test_client_that_fails_to_ask_accepts_nothing(project, caplog):
    async def fail():
        raise LookupError("no dialog")

    project.user.answers = [fail]
    answer = await project.say("Hello.")
    assert answer.stop_reason == "end_turn"
    assert not followed(project)
    assert "AGENTS.md: not accepted" in caplog.text


async def test_prompt_is_cancelled_although_the_question_about_instructions_is_open(project):
    asked, closed = anyio.Event(), anyio.Event()

    async def wait():
        asked.set()
        await closed.wait()
        return "use"

    project.user.answers = [wait, "use"]
    answers = []
    async with anyio.create_task_group() as tasks:

        async def prompt():
            answers.append(await project.agent.prompt(session_id=project.session, prompt=[text_block("go")]))
            closed.set()

        tasks.start_soon(prompt)
        await asked.wait()
        await project.agent.cancel(session_id=project.session)
    assert answers[0].stop_reason == "cancelled"
    assert project.script.requests == []
    await project.say("Bonjour.")
    assert len(project.user.asked) == 2
    assert followed(project)


async def test_no_name_of_a_file_can_forge_a_line_of_the_question(project):
    (project.folder / "AGENTS.md").write_text("@a\x1b.md\nHello\u202e\n```\nforged\n")
    project.user.answers = ["later"]
    await project.say("Hello.")
    shown = project.user.shown()
    assert shown.startswith("````\n")
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "invisible characters" in shown


async def test_instructions_that_are_too_long_to_be_shown_are_not_asked_about(project, caplog):
    (project.folder / "AGENTS.md").write_text("Answer in French.\n" * 20_000)
    await project.say("Hello.")
    assert project.user.asked == []
    assert not followed(project)
    assert "AGENTS.md: not accepted" in caplog.text


async def test_nothing_is_asked_without_the_plugin_that_reads_instructions(editor):
    (editor.folder / "AGENTS.md").write_text("Answer in French.\n")
    await editor.say("Hello.")
    assert editor.user.asked == []


async def test_command_of_a_plugin_asks_nothing(project):
    await project.agent.prompt(session_id=project.session, prompt=[text_block("/say hi")])
    assert project.user.asked == []
