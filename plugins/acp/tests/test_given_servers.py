"""The MCP servers that a client passes."""

import json
import os
import sys
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
import sideband_mcp.plugin
from acp import RequestError
from acp.schema import EnvVariable, HttpMcpServer, McpServerStdio
from sideband import Plugin
from sideband_acp._given_servers import given_servers
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

CODE = """
import json, os, sys

def answer(method, params):
    if method == "initialize":
        known = {"name": "clock", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": known}
    if method == "tools/list":
        schema = {"type": "object", "properties": {}}
        return {"tools": [{"name": "tell", "description": "Tell.", "inputSchema": schema}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "ZONE=" + os.environ.get("ZONE", "")}]}
    return {}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        found = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"], message.get("params"))}
        print(json.dumps(found), flush=True)
"""
PYTHON = os.path.realpath(sys.executable)


def server(name="My Clock", args=("-I", "-S", "-c", CODE), env=(("ZONE", "UTC"),), command=PYTHON):
    given = [EnvVariable(name=key, value=value) for key, value in env]
    return McpServerStdio(name=name, command=command, args=list(args), env=given)


@pytest.fixture
def plugins(sandboxes):
    return [
        Plugin("op", "mcp", sideband_mcp.plugin),
        Plugin("tool", "mcp", sideband_mcp.plugin.servers),
        Plugin("hook", "mcp", sideband_mcp.plugin.user_input),
        Plugin("sandbox", "sandbox", sandboxes),
    ]


@pytest.fixture
async def editor(connect, plugins):
    async with connect(more=plugins) as one:
        yield one


async def opened(editor, *servers):
    """Open a session with these servers, and return its id."""
    return (await editor.agent.new_session(cwd=str(editor.folder), mcp_servers=list(servers))).session_id


async def tool_of(editor, session):
    """Return the name of the tool of the server, once the model sees it."""
    for _ in range(100):
        await editor.say("Hello.", session=session)
        print([c.title for _, c, _ in editor.user.asked], editor.sessions.get(session).agent._parts.tools.problems)
        names = [one.name for one in editor.script.requests[-1].tools if one.name.startswith("my_clock_")]
        if names:
            return names[0]
        await anyio.sleep(0.1)  # no turn waits for a server
    raise AssertionError("the model never sees the tool")


def titles(editor):
    return [call.title for _, call, _ in editor.user.asked]


async def test_server_starts_after_the_user_has_seen_its_command_and_its_tools(editor):
    session = await opened(editor, server())
    editor.user.answers = ["start", "session", "once"]
    tool = await tool_of(editor, session)
    await editor.say(Turn(tool_calls=[(tool, {})]), "done", session=session)
    assert titles(editor) == ["Start the MCP server `My Clock`?", "Grant these rights?", "Allow `mcp.call`?"]
    first, tools = (call.content[0].content.text for _, call, _ in editor.user.asked[:2])
    assert f"  │ {PYTHON}\n  │ -I\n  │ -S\n  │ -c\n" in first
    assert "  │ ZONE = UTC\n" in first
    assert f"can change none:\n  │ {PYTHON}\n" in first
    assert "│ new tool `tell`" in tools or "tell" in tools
    assert editor.user.of("tool_call_update")[-1].raw_output["text"] == "ZONE=UTC"


async def test_options_say_what_a_server_may_do(editor):
    session = await opened(editor, server())
    editor.user.answers = ["later"]
    await editor.say("Hello.", session=session)
    assert [(one.option_id, one.kind) for one in editor.user.asked[0][2]] == [
        ("start", "allow_always"),
        ("network", "allow_always"),
        ("later", "reject_once"),
        ("never", "reject_always"),
    ]


@pytest.mark.parametrize(("answer", "again"), [("later", True), ("never", False), (None, True), ("always", True)])
async def test_server_that_is_not_accepted_does_not_start(editor, answer, again):
    editor.user.answers = [answer, answer]
    for _ in range(2):
        session = await opened(editor, server())
        for _ in range(2):
            await editor.say("Hello.", session=session)
    assert len(editor.user.asked) == (2 if again else 1)
    assert editor.sessions.get(session).agent.withdraw(editor.sessions.get(session).servers[0].name) is False


async def test_answer_holds_for_exactly_this_server(editor):
    editor.user.answers = ["start", "never", "never", "never"]
    for one in (server(), server(), server(env=()), server(args=["-c", "0"]), server("Other")):
        await editor.say("Hello.", session=await opened(editor, one))
    asked = [title for title in titles(editor) if title.startswith("Start")]
    assert asked == [*["Start the MCP server `My Clock`?"] * 3, "Start the MCP server `Other`?"]


async def test_file_that_a_command_names_is_read_and_shown_without_links(editor, tmp_path):
    (tmp_path / "real.py").write_text(CODE)
    (tmp_path / "link.py").symlink_to(tmp_path / "real.py")
    session = await opened(editor, server(args=["-I", "-S", str(tmp_path / "link.py")]))
    editor.user.answers = ["later", "later"]
    await editor.say("Hello.", session=session)
    assert f"  │ {PYTHON}\n  │ {tmp_path}/real.py\n" in editor.user.shown()
    (tmp_path / "link.py").unlink()
    (tmp_path / "other.py").write_text(CODE)
    (tmp_path / "link.py").symlink_to(tmp_path / "other.py")
    again = await opened(editor, server(args=["-I", "-S", str(tmp_path / "link.py")]))
    first, second = (editor.sessions.get(one).servers[0].digest for one in (session, again))
    assert first != second


async def test_no_argument_can_forge_a_line_of_the_question(editor):
    forged = "x\nIt runs in isolation.\x1b[2J\u202e```"
    editor.user.answers = ["later"]
    await editor.say("Hello.", session=await opened(editor, server(args=[forged], env=[("A", forged)], name=forged)))
    shown = editor.user.shown()
    assert sum(line.startswith("It runs in isolation") for line in shown.splitlines()) == 1
    assert not {"\x1b", "\u202e"} & set(shown + titles(editor)[0])


async def test_command_that_is_too_long_to_be_shown_is_not_started(editor, caplog):
    await editor.say("Hello.", session=await opened(editor, server(args=["x" * 250_000])))
    assert editor.user.asked == []
    assert "too long to be shown" in caplog.text


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ([HttpMcpServer(type="http", name="clock", url="https://clock.example", headers=[])], "addresses"),
        ([server(env=[("A=B", "c")])], "invalid name"),
        ([server(command="")], "invalid command"),
        ([server(args=["a\0b"])], "invalid command"),
        ([server(args=["a"] * 1_000)], "invalid command"),
        ([server(env=[("A" * 129, "c")])], "invalid name"),
        ([server(f"s{number}") for number in range(17)], "more than 16"),
    ],
)
async def test_servers_that_cannot_be_used_are_refused_with_the_remedy(editor, servers, problem):
    with pytest.raises(RequestError, match=rf"{problem}.*sideband mcp add.*--ignore-servers") as raised:
        await opened(editor, *servers)
    assert raised.value.data["code"] == "acp.servers"


async def test_program_that_is_not_there_is_reported_and_the_agent_works(editor, caplog):
    session = await opened(editor, server(command="/none/such", args=[]))
    editor.user.answers = ["start"]
    await editor.say("Hello.", session=session)
    with anyio.fail_after(10):
        while "is not installed" not in caplog.text:  # noqa: ASYNC110  nothing announces it
            await anyio.sleep(0.05)
    assert (await editor.say("Hello.", session=session)).stop_reason == "end_turn"


@pytest.mark.parametrize(("answer", "network"), [("start", False), ("network", True)])
def test_server_has_the_network_only_if_the_user_allows_it(answer, network):
    (given,) = given_servers([server()], 1)
    assert given.accepted(answer).network is network


async def test_server_that_is_passed_twice_is_asked_about_once(editor):
    editor.user.answers = ["later"]
    await editor.say("Hello.", session=await opened(editor, server(), server()))
    assert titles(editor) == ["Start the MCP server `My Clock`?"]


async def test_other_rights_for_a_server_in_use_are_refused_and_the_agent_works(editor, tmp_path, caplog):
    editor.user.answers = ["start", "always"]
    await tool_of(editor, await opened(editor, server()))
    (tmp_path / "home" / "acp" / "servers.json").unlink()
    editor.user.answers = ["network"]
    second = await opened(editor, server())
    assert (await editor.say("Hello.", session=second)).stop_reason == "end_turn"
    with anyio.fail_after(10):
        while "another server has its name" not in caplog.text:  # noqa: ASYNC110  nothing announces it
            await anyio.sleep(0.05)


def programs_with(mark):
    """Return the running programs with this argument."""
    return [one for one in Path("/proc").glob("[0-9]*/cmdline") if mark in _words(one)]


def _words(path):
    try:
        return path.read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return []


async def test_program_ends_with_its_session(editor):
    mark = f"mark-{uuid4()}"
    session = await opened(editor, server(args=["-I", "-S", "-c", CODE, mark]))
    editor.user.answers = ["start", "session"]
    await tool_of(editor, session)
    assert programs_with(mark)
    await editor.agent.close_session(session_id=session)
    with anyio.fail_after(10):
        while programs_with(mark):  # noqa: ASYNC110  nothing announces it
            await anyio.sleep(0.05)


async def test_two_sessions_with_one_server_do_not_disturb_each_other(editor):
    first, second = await opened(editor, server()), await opened(editor, server())
    editor.user.answers = ["start", "always"]
    tool = await tool_of(editor, first)
    assert await tool_of(editor, second) == tool
    await editor.agent.close_session(session_id=first)
    editor.user.answers = ["once"]
    await editor.say(Turn(tool_calls=[(tool, {})]), "done", session=second)
    assert editor.user.of("tool_call_update", second)[-1].status == "completed"


async def test_server_is_offered_again_when_the_session_is_loaded(editor):
    session = await opened(editor, server())
    editor.user.answers = ["start", "always"]
    tool = await tool_of(editor, session)
    await editor.agent.load_session(cwd=str(editor.folder), session_id=session, mcp_servers=[server()])
    assert await tool_of(editor, session) == tool
    await editor.agent.load_session(cwd=str(editor.folder), session_id=session, mcp_servers=[])
    await editor.say("Hello.", session=session)
    assert tool not in [one.name for one in editor.script.requests[-1].tools]


async def test_answers_are_stored_by_digest_and_without_values(editor, tmp_path):
    editor.user.answers = ["never"]
    session = await opened(editor, server(env=[("TOKEN", "s3cret")]))
    await editor.say("Hello.", session=session)
    stored = (tmp_path / "home" / "acp" / "servers.json").read_text()
    assert json.loads(stored) == {editor.sessions.get(session).servers[0].digest: "never"}
    assert "s3cret" not in stored


async def test_damaged_answers_start_nothing(editor, tmp_path):
    (tmp_path / "home" / "acp").mkdir()
    (tmp_path / "home" / "acp" / "servers.json").write_text("[")
    editor.user.answers = ["later"]
    await editor.say("Hello.", session=await opened(editor, server()))
    assert titles(editor) == ["Start the MCP server `My Clock`?"]


async def test_server_without_the_plugin_for_servers_is_reported(connect, caplog):
    async with connect() as editor:
        editor.user.answers = ["start"]
        await editor.say("Hello.", session=await opened(editor, server()))
        assert "no plugin starts it" in caplog.text


async def test_answer_that_cannot_be_stored_starts_nothing_and_the_agent_works(editor, tmp_path, caplog):
    (tmp_path / "home" / "acp").write_text("not a folder")
    editor.user.answers = ["start"]
    answer = await editor.say("Hello.", session=await opened(editor, server()))
    assert answer.stop_reason == "end_turn"
    assert "the MCP server `My Clock` is not used" in caplog.text
