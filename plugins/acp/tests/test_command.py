"""The real command, started as an editor starts it, with the client of the official SDK."""

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block

from .conftest import User

pytestmark = pytest.mark.anyio

SIDEBAND = str(Path(sys.executable).with_name("sideband"))
SCRIPT = """
turns = [
    { thinking = "hm", text = "I write it.", tool_calls = [
        { name = "write", arguments = { path = "notes.txt", content = "one\\n" } },
    ] },
    { tool_calls = [{ name = "command", arguments = { command = "cat notes.txt" } }] },
    "It is written.",
    { text = "I wait.", hang_after = 1 },
]
"""
SKILL = """---
name: my-notes
description: Keeps notes.
---
Be brief.
"""
NOISY = """
import os

from pydantic import BaseModel
from sideband.tools import tool

print("noise of an import")
os.write(1, b"noise of a descriptor\\n")


class Nothing(BaseModel):
    pass


@tool("noisy.speak")
async def speak(params: Nothing, ctx) -> str:
    'Print.'
    return "spoken"


def sideband_tools():
    return [speak]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("editor")
    (folder / "script.toml").write_text(SCRIPT)
    (folder / "skills" / "my-notes").mkdir(parents=True)
    (folder / "skills" / "my-notes" / "SKILL.md").write_text(SKILL)
    (folder / "work").mkdir()
    return folder


@pytest.fixture
def environment(folder, tmp_path):
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "SIDEBAND_HOME": str(tmp_path / "home"),
        "SIDEBAND_AGENT__MODEL": "scripted:script",
        "SIDEBAND_PLUGINS__SCRIPTED__SCRIPT": str(folder / "script.toml"),
    }


def children_of(process):
    """Return the processes that this one has started, and theirs."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children_of(child)]
    return found


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@asynccontextmanager
async def started(folder, environment, *words, user=None):
    user = user or User()
    command = [SIDEBAND, "acp", "--skill-dir", str(folder / "skills"), *words]
    with anyio.fail_after(60):
        async with spawn_agent_process(
            user, *command, env=environment, cwd=folder / "work", use_unstable_protocol=True
        ) as (agent, process):
            await agent.initialize(protocol_version=PROTOCOL_VERSION)
            yield agent, process, user


async def test_editor_works_with_the_command(folder, environment):
    async with started(folder, environment) as (agent, process, user):
        session = (await agent.new_session(cwd=str(folder / "work"), mcp_servers=[])).session_id
        user.answers = ["session", "once", "once"]
        answer = await agent.prompt(session_id=session, prompt=[text_block("write")])
        assert answer.stop_reason == "end_turn"
        assert user.text() == "I write it.It is written."
        assert [call.title for _, call, _ in user.asked] == [
            "Grant these rights?",
            "Allow `files.write`?",
            "Allow `shell.run`?",
        ]
        assert (folder / "work" / "notes.txt").read_text() == "one\n"
        output = [one for one in user.of("tool_call_update") if one.content and one.status is None]
        assert output[-1].content[0].content.text == "```\none\n```"
        commands = user.of("available_commands_update")[-1].available_commands
        assert ("my-notes", "Keeps notes.") in [(one.name, one.description) for one in commands]
        listed = (await agent.list_sessions(cwd=str(folder / "work"))).sessions
        assert [(one.session_id, one.title) for one in listed] == [(session, "write")]
        await agent.close_session(session_id=session)
        user.updates.clear()
        await agent.load_session(cwd=str(folder / "work"), session_id=session, mcp_servers=[])
        assert user.text() == "I write it.It is written."
        assert user.text("user_message_chunk") == "write"
    assert process.returncode == 0


async def test_termination_ends_the_run_and_keeps_the_session(folder, environment):
    async with started(folder, environment) as (agent, process, user):
        session = (await agent.new_session(cwd=str(folder / "work"), mcp_servers=[])).session_id
        user.answers = ["session", "once", "once"]
        await agent.prompt(session_id=session, prompt=[text_block("write")])
        async with anyio.create_task_group() as tasks:

            async def wait():
                with pytest.raises((RequestError, ConnectionError)):
                    await agent.prompt(session_id=session, prompt=[text_block("wait")])

            tasks.start_soon(wait)
            while user.text() == "I write it.It is written.":  # noqa: ASYNC110  nothing announces it
                await anyio.sleep(0.02)
            children = children_of(process.pid)
            assert children  # the process that starts the commands of tools
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 128 + signal.SIGTERM
            while any(map(is_running, children)):  # noqa: ASYNC110  as above
                await anyio.sleep(0.02)
    async with started(folder, environment) as (agent, _, user):
        await agent.load_session(cwd=str(folder / "work"), session_id=session, mcp_servers=[])
        assert [one.content.text for one in user.of("user_message_chunk")] == ["write", "wait"]


def run(folder, environment, *messages, words=()):
    """Run the command with these messages as its whole input."""
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages)
    return subprocess.run(
        [SIDEBAND, "acp", *words], input=lines, capture_output=True, text=True, check=False, timeout=60,
        cwd=folder / "work", env=environment,
    )  # fmt: skip


INITIALIZE = {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def new_session(folder):
    return {"id": 1, "method": "session/new", "params": {"cwd": str(folder / "work"), "mcpServers": []}}


def test_only_messages_are_written_to_the_output(folder, environment):
    (folder / "work" / "noisy.py").write_text(NOISY)
    (folder / "work" / "sideband.toml").write_text('[policy.files]\n"tool.noisy" = "noisy.py"\n')
    trust = [SIDEBAND, "plugins", "trust", "noisy.py", "--trust"]
    subprocess.run(trust, env=environment, cwd=folder / "work", check=True, capture_output=True)
    done = run(folder, environment, INITIALIZE, new_session(folder), words=["--trust"])
    (folder / "work" / "sideband.toml").unlink()
    assert done.returncode == 0, done.stderr
    assert "noise of an import" in done.stderr
    assert "noise of a descriptor" in done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["id"] for one in messages if "id" in one] == [0, 1]


def test_missing_model_is_an_error_with_the_remedy(folder, environment):
    del environment["SIDEBAND_AGENT__MODEL"]
    done = run(folder, environment, INITIALIZE, new_session(folder))
    error = json.loads(done.stdout.splitlines()[1])["error"]
    assert "no model" in error["message"]
    assert "--model provider:model" in error["message"]


def test_invalid_configuration_is_an_error_for_the_editor_too(folder, environment):
    environment["SIDEBAND_POLICY__TIMEOUT"] = "soon"
    done = run(folder, environment, INITIALIZE, new_session(folder))
    started, refused = [json.loads(line) for line in done.stdout.splitlines()]
    assert started["result"]["agentInfo"]["name"] == "sideband"
    assert "policy.timeout" in refused["error"]["message"]
    assert refused["error"]["data"]["code"] == "config.invalid"
    assert done.returncode == 5
    assert "policy.timeout" in done.stderr


def test_servers_can_be_left_out(folder, environment):
    request = new_session(folder)
    server = {"name": "clock", "command": "/bin/clock", "args": [], "env": []}
    request["params"]["mcpServers"] = [server]
    done = run(folder, environment, INITIALIZE, request, words=["--ignore-servers"])
    assert "sessionId" in json.loads(done.stdout.splitlines()[1])["result"]


@pytest.mark.parametrize(
    "words", [["--json"], ["--mode", "none"], ["--max-cost", "0"], ["--max-tokens-total", "x"], ["--grant", "x"]]
)
def test_wrong_options_are_refused(folder, environment, words):
    done = run(folder, environment, words=words)
    assert done.returncode == 2
    assert "hint" in done.stdout + done.stderr
