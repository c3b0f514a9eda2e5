"""An agent with a scripted model and a real host, store, ledger and broker."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.hooks import HOOK_SPECS, Kind, hookimpl
from sideband.ledger import query, verify
from sideband.messages import AssistantMessage, ToolResultMessage
from sideband.tools import tool
from sideband_agent import Agent
from sideband_agent.sessions import Sessions
from sideband_scripted import Scripted

REPLAYED = """
import asyncio
import random as plain
from sideband.skill import OpError, now, random, secrets, till, tool, uuid
"""

BUY = '''
@tool
async def buy() -> list:
    """Buy two things."""
    seen = await till.look()
    first = await till.pay(mark=f"a {seen} {uuid()} {now().isoformat()}")
    await till.point(mark="between")
    second = await till.pay(mark=f"b {seen} {random.random()} {random.choice('xyz')}")
    await till.point(mark="end")
    return [seen, first, second]
'''


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Text(BaseModel):
    text: str = ""


@tool("echo", read_only=True)
async def echo(params: Text, ctx) -> str:
    """Return the text."""
    return params.text


def hooks(**functions):
    """Build a hook plugin from functions named after hooks."""
    return SimpleNamespace(**{name: hookimpl(function) for name, function in functions.items()})


def guard(**functions):
    """Build a guard from functions named after hooks."""
    return type("Guard", (), {name: staticmethod(hookimpl(function)) for name, function in functions.items()})


def listening(events, *names):
    """Build a hook plugin that collects the events of these hooks; without names, of all observe hooks."""

    def make(name):
        def listen(event):
            events.append(event)

        listen.__name__ = name
        return hookimpl(listen)

    observed = [name for name, spec in HOOK_SPECS.items() if spec.kind is Kind.OBSERVE]
    return SimpleNamespace(**{name: make(name) for name in names or observed})


@pytest.fixture
def stage(tmp_path):
    """Open a host whose model plays ``turns``, and an agent on it."""

    @asynccontextmanager
    async def open_stage(turns, *plugins, settings=None, home=None, scripted=None, skill_dirs=(), **options):
        provider = scripted or Scripted(turns)
        own = [
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("provider", "scripted", provider),
            *plugins,
        ]
        settings = {"agent": {"model": "scripted:test"}, **(settings or {})}
        host = Host(
            home=home or tmp_path / "home", settings=settings, plugins=own, autoload=False, skill_dirs=skill_dirs
        )
        async with host, Agent(host, **options) as agent:
            agent.scripted = provider
            yield agent

    return open_stage


def assert_valid(messages):
    """Check that each tool call is followed by exactly one result, in order, as providers require."""
    waiting = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert waiting, f"a result without a call: {message.call}"
            assert message.call == waiting.pop(0)
            continue
        assert not waiting, f"calls without results: {waiting}"
        if isinstance(message, AssistantMessage):
            waiting = [call.id for call in message.tool_calls]
            assert len(set(waiting)) == len(waiting)
            assert message.content
    assert not waiting, f"calls without results: {waiting}"


@pytest.fixture
def kit():
    """Helpers shared by the tests of agents."""
    return SimpleNamespace(
        Text=Text,
        assert_valid=assert_valid,
        echo=Plugin("tool", "echo", echo),
        guard=guard,
        hooks=hooks,
        listening=listening,
    )


class KilledHosts:
    """Hosts of ``crash_server.py``, each of which continues the session of its home folder."""

    def __init__(self, process):
        self._process = process

    def run(self, home, last, window=1_000_000):
        """Run a host until the session has ``last`` tasks, and return its exit status."""
        self._start(home, last, window)
        return int(self._process.stdout.readline())

    def kill(self, home, seconds, window=1_000_000, *, busy=False):
        """Kill a host with SIGKILL after some seconds, and return whether it was still running.

        If ``busy``, the time begins with its first request to the model, however slow the machine is.
        """
        before, deadline = len(self.notes(home, "sent")), time.monotonic() + 30 * busy
        pid = self._start(home, 1_000_000, window)
        while len(self.notes(home, "sent")) == before and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(seconds)  # a random moment: the kill must not wait for anything
        os.kill(pid, signal.SIGKILL)
        return int(self._process.stdout.readline()) == signal.SIGKILL

    def notes(self, home, name):
        """Return the lines that the hosts noted under a name."""
        path = home / name
        return path.read_text().splitlines() if path.exists() else []

    def _start(self, home, last, window):
        self._process.stdin.write(f"{home} {last} {window}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@pytest.fixture(scope="session")
def serving():
    """Return a context manager that runs a script of this folder and yields its process, which ends with its input."""

    @contextmanager
    def run(script):
        command = [sys.executable, Path(__file__).with_name(script)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield process
            process.stdin.close()

    return run


@pytest.fixture
def write_poster(tmp_path):
    """Return a function that writes the skill `poster`, which may send requests to this machine."""

    def write(tools):
        skill = tmp_path / "skills" / "poster"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(
            "---\nname: poster\ndescription: Posts.\n"
            "metadata: {sideband.capabilities: 'http:host=127.0.0.1'}\n---\nCall `post`.\n"
        )
        (skill / "tools.py").write_text(tools)

    return write


@pytest.fixture
def killed_hosts(serving):
    with serving("crash_server.py") as process:
        yield KilledHosts(process)


@pytest.fixture
def look():
    """Return a function that returns the only session of a home folder, and the verification of its ledger."""

    async def look(home):
        plugins = [Plugin("store", "sqlite", sideband_store_sqlite.plugin)]
        async with Host(home=home, plugins=plugins, autoload=False) as host:
            sessions = Sessions(host.store, home)
            (info,) = await sessions.list()
            return await sessions.read(info.id), await verify(host.ledger.folder, host.store)

    return look


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def outside(serving):
    """Run a server that counts the requests for each path, in its own process."""
    with serving("counting_server.py") as process:
        port = int(process.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", port)

        def get(path):
            connection.request("GET", path)
            return connection.getresponse().read()

        yield SimpleNamespace(
            url=f"http://127.0.0.1:{port}",
            seen=lambda: Counter(json.loads(get("/seen"))),
            total=lambda: int(get("/total")),
        )
        connection.close()


@pytest.fixture(scope="module")
def replay_server(serving):
    with serving("replay_server.py") as process:
        yield process


@pytest.fixture
def shop(replay_server, home, tmp_path):
    """Run hosts that can kill themselves, with a skill that pays and tools that leave this to child agents."""

    def write(code, **metadata):
        metadata = {"sideband.capabilities": "till secrets:mode=reveal", **metadata}
        folder = tmp_path / "skills" / "buyer"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: buyer\ndescription: Buys.\nmetadata: {json.dumps(metadata)}\n---\nCall `buy`.\n"
        )
        (folder / "tools.py").write_text(REPLAYED + code)

    def run(**order):
        """Run a host, and return its answer, or ``None`` if it killed itself."""
        replay_server.stdin.write(json.dumps({"home": str(home), "tool": "buyer__buy", **order}) + "\n")
        replay_server.stdin.flush()
        status = int(replay_server.stdout.readline())
        assert not (home / "failure").exists(), (home / "failure").read_text()
        if status == signal.SIGKILL:
            return None
        assert status == 0
        return json.loads((home / "answer").read_text())

    def arm(*points):
        (home / "armed").write_text("".join(f"{point}\n" for point in points))

    def lines(name):
        return (home / name).read_text().splitlines() if (home / name).exists() else []

    def records(**filters):
        return anyio.run(lambda: query(home / "ledger", **filters))

    write(BUY)
    return SimpleNamespace(home=home, buy=BUY, write=write, run=run, arm=arm, lines=lines, records=records)
