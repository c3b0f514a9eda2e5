"""Sessions: opened, listed, loaded with their history, resumed and closed."""

from base64 import b64encode

import anyio
import pytest
from acp import RequestError, text_block
from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextResourceContents,
)
from sideband import Plugin
from sideband.hooks import hookimpl
from sideband_acp import AcpPromptInvalid
from sideband_acp._choices import SessionChoices
from sideband_acp._input import input_of
from sideband_agent import Budget
from sideband_scripted import Turn

from .conftest import PIXEL, Hooks

pytestmark = pytest.mark.anyio

UNKNOWN = "0123456789abcdef"


async def test_agent_says_what_it_can_do(connect):
    async with connect(initialized=False) as editor:
        found = await editor.initialize()
        capabilities = found.agent_capabilities
        assert found.protocol_version == 1
        assert found.agent_info.name == "sideband"
        assert capabilities.load_session
        assert capabilities.prompt_capabilities.image
        assert capabilities.prompt_capabilities.audio
        assert capabilities.prompt_capabilities.embedded_context
        sessions = capabilities.session_capabilities
        assert None not in (sessions.list, sessions.resume, sessions.close)
        assert (sessions.fork, sessions.delete) == (None, None)
        assert not capabilities.mcp_capabilities.http


async def test_request_before_the_initialization_is_refused(connect):
    async with connect(initialized=False) as editor:
        with pytest.raises(RequestError, match="initialize first") as raised:
            await editor.open()
        assert raised.value.data["code"] == "acp.failed"


async def test_history_of_a_loaded_session_is_sent_before_the_answer(editor):
    (editor.folder / "notes.txt").write_text("one\n")
    editor.user.answers = ["once"]
    edit = {"path": "notes.txt", "edits": [{"old": "one", "new": "1"}]}
    tasks = {"add": ["edit it"]}
    calls = [("things__picture", {}), ("things__none", {}), ("todo", tasks)]
    await editor.say(
        Turn(thinking="hmm", text="Let me see.", tool_calls=[("read", {"path": "notes.txt"})]),
        Turn(tool_calls=[("edit", edit)]),
        Turn(tool_calls=calls),
        "Done.",
        text="change it",
    )
    await editor.agent.close_session(session_id=editor.session)
    editor.user.updates.clear()
    await editor.agent.load_session(cwd=str(editor.folder), session_id=editor.session, mcp_servers=[])
    assert editor.user.kinds()[:9] == [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
        *["tool_call"] * 5,
        "agent_message_chunk",
    ]
    assert editor.user.of("user_message_chunk")[0].content.text == "change it"
    read, edited, picture, unknown, todo = editor.user.of("tool_call")
    assert [one.status for one in (read, edited, picture, unknown, todo)] == [
        "completed", "completed", "completed", "failed", "completed",
    ]  # fmt: skip
    assert [(one.type, one.old_text, one.new_text) for one in edited.content] == [("diff", "one", "1")]
    assert picture.content[0].content.mime_type == "image/png"
    assert editor.user.of("plan")[0].entries[0].content == "edit it"
    assert (await editor.say("Again.")).stop_reason == "end_turn"
    assert len(editor.script.requests[-1].messages) > 5


async def test_resumed_session_continues_without_its_history(editor):
    await editor.say("Hello.")
    await editor.agent.close_session(session_id=editor.session)
    editor.user.updates.clear()
    await editor.agent.resume_session(cwd=str(editor.folder), session_id=editor.session, mcp_servers=[])
    assert "user_message_chunk" not in editor.user.kinds()
    await editor.say("Again.")
    assert [one.text for one in editor.script.requests[-1].messages] == ["go", "Hello.", "go"]


async def test_session_that_is_open_can_be_loaded_again(editor):
    await editor.say("Hello.")
    await editor.agent.load_session(cwd=str(editor.folder), session_id=editor.session, mcp_servers=[])
    assert editor.user.of("user_message_chunk")[0].content.text == "go"
    assert (await editor.say("Again.")).stop_reason == "end_turn"


async def test_sessions_are_listed_by_folder_and_page(connect, tmp_path):
    async with connect(listed=2) as editor:
        for number in range(3):
            session = (await editor.open()).session_id
            await editor.say("Hello.", text=f"number {number}\nmore", session=session)
        other = (await editor.open(tmp_path)).session_id
        await editor.say("Hello.", text="elsewhere", session=other)
        page = await editor.agent.list_sessions(cwd=str(editor.folder))
        assert [one.title for one in page.sessions] == ["number 2 more", "number 1 more"]
        assert {one.cwd for one in page.sessions} == {str(editor.folder)}
        rest = await editor.agent.list_sessions(cwd=str(editor.folder), cursor=page.next_cursor)
        assert [one.title for one in rest.sessions] == ["number 0 more"]
        assert rest.next_cursor is None
        assert (await editor.agent.list_sessions()).sessions[0].session_id == other
        for cursor in ("-1", "x", "9" * 20):
            with pytest.raises(RequestError, match="unknown cursor"):
                await editor.agent.list_sessions(cursor=cursor)


async def test_title_is_sent_when_it_is_known(editor):
    await editor.say("Hello.", text="count the stars")
    await editor.say("Hello.")
    titles = [one.title for one in editor.user.of("session_info_update") if one.title]
    assert titles == ["count the stars"]


@pytest.mark.parametrize("session", [UNKNOWN, "", "x" * 10_000, "../..", "\0", "a/b"])
async def test_unknown_session_is_refused(editor, session):
    folder = str(editor.folder)
    for request in (
        editor.agent.prompt(session_id=session, prompt=[text_block("go")]),
        editor.agent.load_session(cwd=folder, session_id=session, mcp_servers=[]),
        editor.agent.resume_session(cwd=folder, session_id=session, mcp_servers=[]),
        editor.agent.close_session(session_id=session),
        editor.agent.set_session_mode(session_id=session, mode_id="full"),
    ):
        with pytest.raises(RequestError, match="unknown session") as raised:
            await request
        assert (raised.value.code, raised.value.data["code"]) == (-32002, "acp.session")
        assert len(str(raised.value)) < 500
    await editor.agent.cancel(session_id=session)
    assert (await editor.say("Hello.")).stop_reason == "end_turn"


async def test_session_is_not_found_by_its_name_or_the_beginning_of_its_id(editor):
    await editor.say("Hello.")
    await editor.agent.close_session(session_id=editor.session)
    with pytest.raises(RequestError, match="unknown session"):
        await editor.agent.load_session(cwd=str(editor.folder), session_id=editor.session[:6], mcp_servers=[])


async def test_more_sessions_than_allowed_are_refused_until_one_is_closed(connect):
    async with connect(sessions=2) as editor:
        await editor.open()
        with pytest.raises(RequestError, match="2 sessions are open already") as raised:
            await editor.open()
        assert raised.value.data["code"] == "acp.sessions"
        await editor.agent.close_session(session_id=editor.session)
        await editor.open()


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("work", "not an absolute path"),
        ("/none/such", "does not exist"),
        ("/\0", "not an absolute"),
        ("/" + "a" * 5_000, "does not exist"),
        ("", "absolute"),
    ],
)
async def test_folder_that_cannot_be_used_is_refused(editor, folder, problem):
    with pytest.raises(RequestError, match=problem) as raised:
        await editor.agent.new_session(cwd=folder, mcp_servers=[])
    assert (raised.value.code, raised.value.data["code"]) == (-32602, "acp.folder")


async def test_further_folders_are_refused(editor):
    with pytest.raises(RequestError, match="not supported"):
        await editor.agent.new_session(cwd=str(editor.folder), mcp_servers=[], additional_directories=["/srv"])


async def test_missing_model_is_refused_with_the_remedy(connect):
    async with connect(initialized=False, settings={"agent": {}}) as editor:
        await editor.initialize()
        with pytest.raises(RequestError, match=r"no model .*--model provider:model") as raised:
            await editor.open()
        assert raised.value.data["code"] == "agent.model"


async def test_choices_of_the_command_line_hold_for_each_session(connect):
    choices = SessionChoices(model="scripted:other", tools=["things.echo"], mode="full", budget=Budget(calls=1))
    async with connect(initialized=False, choices=choices) as editor:
        await editor.initialize()
        found = await editor.open()
        assert found.modes.current_mode_id == "full"
        await editor.say("Hello.")
        assert editor.script.requests[-1].model == "other"
        assert [one.name for one in editor.script.requests[-1].tools] == ["things__echo"]


async def test_mode_model_and_thinking_are_options_of_the_session(connect):
    agent = {"model": "scripted:test", "fallbacks": ["scripted:other"]}
    async with connect(settings={"agent": agent}) as editor:

        async def choose(option, value):
            found = await editor.agent.set_config_option(config_id=option, session_id=editor.session, value=value)
            return {one.id: one.current_value for one in found.config_options}

        found = (await editor.open()).config_options
        assert [(one.id, one.category) for one in found] == [
            ("mode", "mode"), ("model", "model"), ("thinking", "thought_level"),
        ]  # fmt: skip
        assert [one.value for one in found[1].options] == ["scripted:test", "scripted:other"]
        assert [one.value for one in found[2].options] == ["default", "off", "low", "medium", "high"]
        assert (await choose("mode", "full"))["mode"] == "full"
        assert (await choose("model", "scripted:other"))["model"] == "scripted:other"
        assert (await choose("thinking", "high"))["thinking"] == "high"
        await editor.say("Hello.")
        assert (editor.script.requests[-1].model, editor.script.requests[-1].thinking) == ("other", "high")
        for option, value in [("model", "openai:x"), ("thinking", "default"), ("none", "x"), ("thinking", "deep")]:
            with pytest.raises(RequestError, match="unknown option") as raised:
                await choose(option, value)
            assert (raised.value.code, raised.value.data["code"]) == (-32602, "acp.option")


async def test_session_that_works_is_not_opened_again(editor):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(editor.say, Turn(tool_calls=[("things__wait", {})]), "done")
        await editor.door.began.wait()
        with pytest.raises(RequestError, match="working on a prompt"):
            await editor.agent.load_session(cwd=str(editor.folder), session_id=editor.session, mcp_servers=[])
        editor.door.open.set()
    assert editor.user.text() == "done"


def test_attachments_of_a_prompt_are_limited_together():
    blob = b64encode(b"%PDF-1.7\n" + b"x" * (17 << 20)).decode()
    part = EmbeddedResourceContentBlock(
        type="resource", resource=BlobResourceContents(uri="file:///a.pdf", blob=blob, mime_type="application/pdf")
    )
    assert len(input_of([part], 2).attachments) == 1
    with pytest.raises(AcpPromptInvalid, match="32 MiB"):
        input_of([part, part], 2)


async def test_slash_command_of_a_plugin_answers_instead_of_the_model(editor):
    await editor.say("Hello.")
    (commands,) = editor.user.of("available_commands_update")
    assert [(one.name, one.description, one.input.root.hint) for one in commands.available_commands] == [
        ("say", "Say something", "text"),
        ("greet", "Greet", "[name]"),
    ]
    answer = await editor.agent.prompt(session_id=editor.session, prompt=[text_block("/say hi there")])
    assert answer.stop_reason == "end_turn"
    assert editor.user.text().endswith("you said hi there in acp")
    assert len(editor.script.requests) == 1
    editor.script.turns.append("Hi.")
    await editor.agent.prompt(session_id=editor.session, prompt=[text_block("/greet Ada")])
    assert editor.script.requests[-1].messages[-1].text == "Greetings to Ada"
    with pytest.raises(RequestError, match="the command `/say` failed: LookupError"):
        await editor.agent.prompt(session_id=editor.session, prompt=[text_block("/say fail")])


async def test_command_runs_although_the_client_has_not_waited_for_the_list(connect):
    listed = anyio.Event()

    class Slow:
        asked = 0

        @hookimpl
        async def chat_commands(self, event):
            self.asked += 1
            if self.asked == 1:  # for the client
                await listed.wait()
            return []

    async with connect(more=[Plugin("hook", "slow", Slow())]) as editor:
        answer = await editor.agent.prompt(session_id=editor.session, prompt=[text_block("/say hi")])
        listed.set()
        assert answer.stop_reason == "end_turn"
        assert editor.user.text() == "you said hi in acp"


async def test_command_that_two_plugins_have_is_not_offered(connect):
    async with connect(more=[Plugin("hook", "other", Hooks())]) as editor:
        await editor.say("Hello.", text="/say hi")
        assert editor.script.requests[-1].messages[-1].text == "/say hi"
        assert editor.user.of("available_commands_update")[0].available_commands == []


async def test_skill_is_a_slash_command(connect, tmp_path):
    folder = tmp_path / "skills" / "my-notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: my-notes\ndescription: Keeps\n  notes.\n---\nBe brief.\n")
    async with connect(skills=[folder.parent]) as editor:
        await editor.say("Hello.", text="/my-notes sort them")
        assert editor.script.requests[-1].messages[-1].text == "Use the skill `my-notes`. sort them"
        (commands,) = editor.user.of("available_commands_update")
        assert ("my-notes", "Keeps notes.") in [(one.name, one.description) for one in commands.available_commands]


async def test_files_and_images_of_a_prompt_reach_the_model(editor):
    uri = f"file://{editor.folder}/a%20b.py"
    text = TextResourceContents(uri=uri, text='print("</file>")\n', mime_type="text/x-python")
    pdf = BlobResourceContents(uri="file:///srv/report.pdf", blob="JVBERi0xLjcK", mime_type="application/pdf")
    prompt = [
        text_block("look at "),
        EmbeddedResourceContentBlock(type="resource", resource=text),
        text_block(" and "),
        ResourceContentBlock(type="resource_link", name="notes", uri="file:///srv/notes.txt#L1-2"),
        ImageContentBlock(type="image", data=PIXEL, mime_type="image/png"),
        EmbeddedResourceContentBlock(type="resource", resource=pdf),
    ]
    editor.script.turns.append("I see.")
    await editor.agent.prompt(session_id=editor.session, prompt=prompt)
    message = editor.script.requests[-1].messages[-1]
    said, *context = message.text.split("\n\n")
    assert said == f"look at @{editor.folder}/a b.py and @/srv/notes.txt (L1-2) @/srv/report.pdf"
    assert context == [f'<file name="{uri}">\nprint("</file>")\n</file>']
    assert [one.type for one in message.content] == ["text", "image", "file"]


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ([], "empty"),
        ([text_block("  ")], "empty"),
        ([text_block("a")] * 201, "more than 200 parts"),
        ([ResourceContentBlock(type="resource_link", name="a", uri="http://[::1")], "not an address"),
        ([ImageContentBlock(type="image", data="%%", mime_type="image/png")], "base64"),
        ([ImageContentBlock(type="image", data="AAAA", mime_type="image/png")], "unknown type"),
        ([AudioContentBlock(type="audio", data=PIXEL, mime_type="audio/wav")], "another type"),
    ],
)
async def test_prompt_that_cannot_be_used_is_refused(editor, prompt, problem):
    with pytest.raises(RequestError, match=problem) as raised:
        await editor.agent.prompt(session_id=editor.session, prompt=prompt)
    assert (raised.value.code, raised.value.data["code"]) == (-32602, "acp.prompt")
    assert (await editor.say("Hello.")).stop_reason == "end_turn"


async def test_closing_a_session_ends_its_run(editor):
    answers = []
    async with anyio.create_task_group() as tasks:

        async def say():
            answers.append(await editor.say(Turn(tool_calls=[("things__wait", {})])))

        tasks.start_soon(say)
        await editor.door.began.wait()
        await editor.agent.close_session(session_id=editor.session)
    assert [one.stop_reason for one in answers] == ["cancelled"]
    assert editor.door.left.is_set()


async def test_no_authentication_is_needed(editor):
    with pytest.raises(RequestError, match="no authentication"):
        await editor.agent.authenticate(method_id="key")
