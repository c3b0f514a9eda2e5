"""The real command, started by the official SDK's client."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from sideband.ledger import query

pytestmark = pytest.mark.anyio

SIDEBAND = str(Path(sys.executable).with_name("sideband"))
SKILL = """---
name: my-notes
description: Keeps notes.
---
Call `count` first.
"""
TOOLS = '''
import asyncio
from sideband.skill import progress, tool


@tool
async def count(text: str) -> dict:
    """Count the words of a text."""
    print("noise of the skill")
    await progress.report(current=1, total=2, message="half")
    return {"words": len(text.split())}


@tool
async def sleep() -> None:
    """Never end."""
    await progress.report(current=1)
    await asyncio.sleep(3600)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("command")


@pytest.fixture(scope="module")
def skill(folder):
    skill = folder / "my-notes"
    (skill / "references").mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    (skill / "tools.py").write_text(TOOLS)
    (skill / "references" / "format.md").write_text("One word a line.")
    (skill / "private.txt").write_text("not a reference")
    return skill


@pytest.fixture(scope="module")
def environment(folder):
    return {**os.environ, "HOME": str(folder), "SIDEBAND_HOME": str(folder / "home")}


@asynccontextmanager
async def connected(skill, environment):
    arguments = ["mcp", "serve", "--skill-dir", str(skill)]
    parameters = StdioServerParameters(command=SIDEBAND, args=arguments, env=environment, cwd=str(skill.parent))
    with anyio.fail_after(60):
        async with Client(stdio_client(parameters), cache=None) as client:
            yield client


async def test_skill_is_offered_and_called_through_the_command(skill, environment):
    seen = []

    async def note(progress, total, message):
        seen.append((progress, total, message))

    async with connected(skill, environment) as client:
        assert client.server_info.name == "sideband"
        assert [one.name for one in (await client.list_tools()).tools] == ["my_notes__count", "my_notes__sleep"]
        result = await client.call_tool("my_notes__count", {"text": "one two"}, progress_callback=note)
        assert result.structured_content == {"words": 2}, result.content[0].text
        assert seen == [(1, 2, "half")]
        assert [one.uri for one in (await client.list_resources()).resources] == [
            "skill://my-notes/SKILL.md",
            "skill://my-notes/references/format.md",
        ]
        (text,) = (await client.read_resource("skill://my-notes/references/format.md")).contents
        assert text.text == "One word a line."
        assert [one.name for one in (await client.list_prompts()).prompts] == ["my-notes"]
        (message,) = (await client.get_prompt("my-notes")).messages
        assert message.content.text.strip() == "Call `count` first."
    found = await query(Path(environment["SIDEBAND_HOME"]) / "ledger", op="tool.call")
    assert (found[0].effect, found[0].status) == (result.meta["sideband/effect"], "done")


async def test_yes_answers_for_the_client(folder, environment):
    """Both eras of the protocol have forms, which `--yes` replaces."""

    async def asked(context, params):
        raise AssertionError(params.message)

    arguments = ["mcp", "serve", "--tools", "write", "--yes"]
    parameters = StdioServerParameters(command=SIDEBAND, args=arguments, env=environment, cwd=str(folder))
    for mode in ("legacy", "2026-07-28"):
        errors = folder / f"{mode}.log"
        with anyio.fail_after(60), errors.open("w") as log:
            streams = stdio_client(parameters, errlog=log)
            async with Client(streams, mode=mode, cache=None, elicitation_callback=asked) as client:
                result = await client.call_tool("write", {"path": f"{mode}.txt", "content": "new"})
        assert not result.is_error, result.content[0].text
        assert (folder / f"{mode}.txt").read_text() == "new"
        assert "allowed by --yes: files.write: Make this change?" in errors.read_text()


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
    print("noise of a call")
    os.system("echo noise of a command")
    return "spoken"


def sideband_tools():
    return [speak]
"""
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


class Raw:
    """The command with pipes, and messages as lines."""

    def __init__(self, process):
        self.process, self.lines = process, []

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, number):
        while True:
            line = self.process.stdout.readline()
            assert line, "the server has ended"
            self.lines.append(line)
            message = json.loads(line)
            if message.get("id") == number:
                return message

    def initialize(self):
        self.send(id=0, method="initialize", params=CLIENT)
        self.answer(0)
        self.send(method="notifications/initialized")


@contextmanager
def started(skill, environment, *arguments):
    command = [SIDEBAND, "mcp", "serve", "--skill-dir", str(skill), *arguments]
    with (skill.parent / "errors.txt").open("w") as errors:
        process = subprocess.Popen(
            command, env=environment, cwd=skill.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    with process:
        try:
            yield Raw(process)
        finally:
            process.kill()


def test_nothing_but_messages_is_written(skill, environment):
    (skill.parent / "noisy.py").write_text(NOISY)
    (skill.parent / "sideband.toml").write_text('[policy.files]\n"tool.noisy" = "noisy.py"\n')
    trust = [SIDEBAND, "plugins", "trust", "noisy.py", "--trust"]
    subprocess.run(trust, env=environment, cwd=skill.parent, check=True, capture_output=True)
    with started(skill, environment, "--tools", "noisy.speak", "--trust") as server:
        server.initialize()
        server.send(id=1, method="tools/call", params={"name": "noisy__speak", "arguments": {}})
        assert server.answer(1)["result"]["content"][0]["text"] == "spoken"
        server.process.stdin.close()
        rest = server.process.stdout.read()
        assert server.process.wait(30) == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in (*server.lines, *rest.splitlines()))
    errors = (skill.parent / "errors.txt").read_text()
    assert "noise of an import" in errors
    assert "noise of a command" in errors


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


def test_client_that_is_killed_during_a_call_leaves_a_record_and_no_process(skill, environment):
    with started(skill, environment) as server:
        server.initialize()
        call = {"name": "my_notes__sleep", "arguments": {}, "_meta": {"progressToken": 1}}
        server.send(id=1, method="tools/call", params=call)
        while json.loads(server.process.stdout.readline()).get("method") != "notifications/progress":
            pass
        workers = children_of(server.process.pid)
        assert workers
        server.process.stdin.close()  # what the system does when it ends a process
        assert server.process.wait(30) == 0
        assert not [one for one in workers if is_running(one)]
    found = anyio.run(partial(query, Path(environment["SIDEBAND_HOME"]) / "ledger", op="tool.call"))
    assert (found[0].params["tool"], found[0].status) == ("my_notes.sleep", "cancelled")


def test_address_and_token_are_shown_once(skill, environment):
    errors = skill.parent / "errors.txt"
    with started(skill, environment, "--listen", "0") as server:
        while "Bearer" not in (shown := errors.read_text()):
            time.sleep(0.02)
        (url,), (token,) = re.findall(r"serving (\S+)", shown), re.findall(r"Bearer (\S+)", shown)
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT}
        accept = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {token}"}
        assert httpx2.post(url, json=body, headers=accept, trust_env=False).status_code == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 143
        assert token.encode() not in server.process.stdout.read()
    assert "Traceback" not in errors.read_text()


def test_options_of_addresses_need_one(environment):
    command = [SIDEBAND, "mcp", "serve", "--token", "name"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "need --listen" in ran.stderr
