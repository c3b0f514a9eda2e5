"""The commands `sideband mcp login` and `sideband mcp logout`."""

import json
import os
import re
import sys
from pathlib import Path

import anyio
import pytest

pytestmark = pytest.mark.anyio

SIDEBAND = str(Path(sys.executable).with_name("sideband"))


class CommandLine:
    """The command line of a person, with a configured server."""

    def __init__(self, folder, url):
        self._folder = folder
        home = folder / "home"
        home.mkdir()
        (home / "sideband.toml").write_text(
            f'[plugins.mcp.servers.things]\nurl = "{url}"\nlocal = true\noauth = true\n'
            '[plugins.secrets]\nbackend = "encrypted"\nkey = "file"\n'
        )
        self._variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "SIDEBAND_HOME": str(home)}

    def start(self, *words):
        """Start a command."""
        return anyio.open_process([SIDEBAND, "mcp", *words], env=self._variables, cwd=self._folder)

    async def run(self, *words):
        """Run a command that succeeds, and return its data."""
        command = [SIDEBAND, "mcp", *words, "--json"]
        return json.loads((await anyio.run_process(command, env=self._variables, cwd=self._folder)).stdout)


@pytest.fixture
def command_line(tmp_path, guarded):
    return CommandLine(tmp_path, guarded.url)


async def question_of(process):
    """Return what a command has written to standard error, once it waits for the person."""
    text = ""
    with anyio.fail_after(60):
        while "paste here" not in text:
            text += (await process.stderr.receive()).decode()
    return text


async def test_person_logs_in_and_out(command_line, things, canaille):
    async with await command_line.start("login", "things", "--json") as process:
        question = await question_of(process)
        assert f"`{canaille}` asks whether `things`" in question
        await things.browser.open(re.search(r"http\S+/oauth/authorize\S+", question)[0])
        found = b"".join([part async for part in process.stdout])
    assert json.loads(found) == {"server": "things", "issuer": canaille, "scope": "openid"}
    assert await command_line.run("logout", "things") == {"server": "things", "deleted": True, "revoked": True}


async def test_person_pastes_the_address_after_a_wrong_one(command_line, things):
    async with await command_line.start("login", "things") as process:
        question = await question_of(process)
        pasted = await things.browser.read(re.search(r"http\S+/oauth/authorize\S+", question)[0])
        await process.stdin.send(f"{pasted.replace('state=', 'state=x')}\n".encode())
        assert "does not belong to this login" in (await process.stderr.receive()).decode()
        await process.stdin.send(f"{pasted}\n".encode())
        found = b"".join([part async for part in process.stdout])
    assert b"authorized `things`" in found
