"""Prompts, and what the client sees of the answer."""

import anyio
import pytest
from acp import RequestError, text_block
from sideband_scripted import Hang, Turn

pytestmark = pytest.mark.anyio


async def test_answer_and_thinking_are_streamed_and_the_prompt_ends(editor):
    answer = await editor.say(Turn(thinking="hmm", text="Hello there."))
    assert answer.stop_reason == "end_turn"
    assert editor.user.text() == "Hello there."
    assert editor.user.text("agent_thought_chunk") == "hmm"
    assert len({one.message_id for one in editor.user.of("agent_message_chunk")}) == 1


async def test_tool_call_is_reported_from_the_request_to_the_result(editor):
    await editor.say(Turn(tool_calls=[("things__echo", {"text": "hi"})]), "done")
    (start,) = editor.user.of("tool_call")
    assert (start.status, start.kind, start.title) == ("pending", "other", "`things.echo` `hi`")
    assert start.raw_input == {"text": "hi"}
    running, ended = editor.user.of("tool_call_update")
    assert {running.tool_call_id, ended.tool_call_id} == {start.tool_call_id}
    assert (running.status, ended.status) == ("in_progress", "completed")
    assert ended.content[0].content.text == "```\nhi\n```"
    assert ended.raw_output == {"text": "hi"}


async def test_image_of_a_tool_is_content(editor):
    await editor.say(Turn(tool_calls=[("things__picture", {})]), "done")
    assert editor.user.of("tool_call_update")[-1].content[0].content.mime_type == "image/png"


async def test_progress_of_a_tool_is_reported_while_it_runs(editor):
    await editor.say(Turn(tool_calls=[("things__work", {})]), "done")
    texts = [one.content[0].content.text for one in editor.user.of("tool_call_update") if one.content]
    assert texts == ["```\n1 of 3 half\n```", "```\nworked\n```"]


async def test_unknown_tool_is_a_failed_call(editor):
    await editor.say(Turn(tool_calls=[("things__none", {})]), "done")
    (update,) = editor.user.of("tool_call_update")
    assert update.status == "failed"
    assert "unknown tool" in update.content[0].content.text


async def test_file_is_read_with_its_place(editor):
    (editor.folder / "notes.txt").write_text("one\ntwo\n")
    await editor.say(Turn(tool_calls=[("read", {"path": "notes.txt", "first": 2})]), "done")
    (start,) = editor.user.of("tool_call")
    assert (start.kind, start.title) == ("read", "read `notes.txt`")
    assert [(one.path, one.line) for one in start.locations] == [(str(editor.folder / "notes.txt"), 2)]
    assert editor.user.of("tool_call_update")[-1].status == "completed"


@pytest.mark.parametrize(
    ("text", "forbidden"),
    [("\x1b[2J\x1b]0;x\x07clear", "\x1b"), ("a\u202eb", "\u202e"), ("a\u200bb", "\u200b")],
)
async def test_nothing_that_a_model_or_tool_says_has_control_characters(editor, text, forbidden):
    await editor.say(Turn(thinking=text, text=text, tool_calls=[("things__echo", {"text": text})]), text)
    shown = [one.content.text for one in editor.user.of("agent_message_chunk") + editor.user.of("agent_thought_chunk")]
    shown += [one.title for one in editor.user.of("tool_call")]
    shown += [one.content[0].content.text for one in editor.user.of("tool_call_update") if one.content]
    shown += [one.raw_input["text"] for one in editor.user.of("tool_call")]
    shown += [one.raw_output["text"] for one in editor.user.of("tool_call_update") if one.raw_output]
    assert len(shown) >= 6
    assert not any(forbidden in one for one in shown)


async def test_result_cannot_leave_its_block_of_code(editor):
    await editor.say(Turn(tool_calls=[("things__echo", {"text": "```\n# forged\n```"})]), "done")
    assert editor.user.of("tool_call_update")[-1].content[0].content.text.startswith("````\n")
    assert editor.user.of("tool_call")[0].title == "`things.echo` ```` ```\\n# forged\\n``` ````"


async def test_tasks_of_the_agent_are_the_plan(editor):
    add = {"add": ["read", "write"]}
    begin = {"set": [{"number": 1, "state": "active"}]}
    await editor.say(Turn(tool_calls=[("todo", add)]), Turn(tool_calls=[("todo", begin)]), "done")
    plans = [[(one.content, one.status) for one in plan.entries] for plan in editor.user.of("plan")]
    assert plans == [
        [("read", "pending"), ("write", "pending")],
        [("read", "in_progress"), ("write", "pending")],
    ]


async def test_usage_of_the_context_is_reported(editor):
    await editor.say("Hello.")
    used = editor.user.of("usage_update")[-1]
    assert used.size == 100_000
    assert 0 < used.used < used.size


@pytest.mark.parametrize(("stop", "reason"), [("end", "end_turn"), ("length", "max_tokens"), ("refusal", "refusal")])
async def test_end_of_the_answer_has_its_reason(editor, stop, reason):
    assert (await editor.say(Turn(text="so", stop=stop))).stop_reason == reason


async def test_spent_budget_ends_the_prompt_and_says_why(connect):
    async with connect(settings={"agent": {"model": "scripted:test", "budget": {"calls": 1}}}) as editor:
        answer = await editor.say(*[Turn(tool_calls=[("things__echo", {})])] * 2, "never")
        assert answer.stop_reason == "max_turn_requests"
        assert "budget" in editor.user.text()


async def test_failed_run_is_an_error_with_the_remedy(editor):
    with pytest.raises(RequestError, match=r"the script has no turn 1 .* add turns") as raised:
        await editor.agent.prompt(session_id=editor.session, prompt=[text_block("go")])
    assert raised.value.code == -32603
    assert "add turns" in raised.value.data["hint"]


async def test_cancelled_model_call_ends_the_prompt(editor):
    hang = Hang()
    async with anyio.create_task_group() as tasks:

        async def cancel():
            await hang.reached.wait()
            await editor.agent.cancel(session_id=editor.session)

        tasks.start_soon(cancel)
        assert (await editor.say(hang)).stop_reason == "cancelled"
    assert (await editor.say("again")).stop_reason == "end_turn"


async def test_cancelled_tool_is_stopped_and_its_call_is_closed(editor):
    async with anyio.create_task_group() as tasks:

        async def cancel():
            await editor.door.began.wait()
            await editor.agent.cancel(session_id=editor.session)

        tasks.start_soon(cancel)
        answer = await editor.say(Turn(tool_calls=[("things__wait", {})]))
    assert answer.stop_reason == "cancelled"
    assert editor.door.left.is_set()
    assert editor.user.of("tool_call_update")[-1].status == "failed"


async def test_prompt_that_is_cancelled_at_once_does_not_run(editor):
    async with anyio.create_task_group() as tasks:
        answers = []

        async def say():
            answers.append(await editor.say(Turn(tool_calls=[("things__wait", {})])))

        tasks.start_soon(say)
        await anyio.lowlevel.checkpoint()
        await editor.agent.cancel(session_id=editor.session)
    assert [one.stop_reason for one in answers] == ["cancelled"]
    assert not editor.door.began.is_set()


async def test_second_prompt_of_a_session_is_refused_while_one_is_in_progress(editor):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(editor.say, Turn(tool_calls=[("things__wait", {})]), "done")
        await editor.door.began.wait()
        with pytest.raises(RequestError, match="session/cancel") as raised:
            await editor.agent.prompt(session_id=editor.session, prompt=[text_block("and")])
        assert raised.value.data["code"] == "acp.busy"
        editor.door.open.set()


async def test_sessions_work_at_the_same_time_in_their_own_folders(editor, tmp_path):
    other = await editor.open(tmp_path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(editor.say, Turn(tool_calls=[("things__wait", {})]))
        await editor.door.began.wait()
        await editor.say("second", session=other.session_id)
        assert editor.user.text(session=other.session_id) == "second"
        assert editor.user.text(session=editor.session) == ""
        editor.script.turns.append("first")
        editor.door.open.set()
    assert {one.agent.folder for one in editor.sessions._open.values()} == {editor.folder, tmp_path}
