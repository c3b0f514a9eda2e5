"""A host with this plugin, and servers made with the official SDK, which run in the isolation of the system."""

import gzip
import os
import socket
import sys
import textwrap
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
import sideband_llm.plugin
import sideband_mcp.plugin
import sideband_store_sqlite.plugin
import uvicorn
from mcp.server import MCPServer
from sideband import Host, Plugin
from sideband.approvals import Approval
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

PYTHON = os.path.realpath(sys.executable)
RAW = Path(__file__).with_name("raw_server.py")

SERVER = """
from mcp.server import MCPServer

server = MCPServer("things")


@server.tool()
def add(a: int, b: int = 1) -> int:
    "Add two numbers."
    return a + b


{more}

if __name__ == "__main__":
    server.run("stdio")
"""


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def make_server(tmp_path):
    """Write a server, and return its table of the configuration."""

    def make(more="", name="things", **settings):
        folder = tmp_path / "servers"
        folder.mkdir(exist_ok=True)
        file = folder / f"{name}.py"
        file.write_text(SERVER.format(more=textwrap.dedent(more)))
        read = [str(folder), sys.prefix, sys.base_prefix]
        return {"command": [sys.executable, str(file)], "read": read, **settings}

    return make


@pytest.fixture
def raw_server():
    """Return the table of a server that answers with the function `answer` in this code. See `raw_server.py`."""

    def make(code=None, **settings):
        code = textwrap.dedent(code or "def answer(method, params, number): return default(method, params)")
        read = [str(RAW), sys.base_prefix]
        return {"command": [PYTHON, "-I", "-S", str(RAW), code], "read": read, **settings}

    return make


@pytest.fixture
def person():
    """An approver that answers with the answers given, else with yes for the session, and keeps the requests."""

    async def answer(request):
        answer.requests.append(request)
        return answer.answers.pop(0) if answer.answers else Approval("allow", "session")

    answer.requests, answer.answers = [], []
    return answer


@pytest.fixture
def script():
    return Scripted([])


@pytest.fixture
def open_host(tmp_path, sandboxes, script):
    """Return a function that makes a host with these servers and limits."""

    def make(servers, *plugins, settings=None, skill_dirs=(), sandbox=None, **limits):
        tables = {"agent": {"model": "scripted:test"}, "plugins": {"mcp": {"servers": servers, **limits}}}
        settings = {**tables, **(settings or {})}
        found = [
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("op", "mcp", sideband_mcp.plugin),
            Plugin("tool", "mcp", sideband_mcp.plugin.servers),
            Plugin("hook", "mcp", sideband_mcp.plugin.user_input),
            Plugin("provider", "scripted", script),
            Plugin("sandbox", "sandbox", sandbox or sandboxes),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            *plugins,
        ]
        options = {"settings": settings, "plugins": found, "autoload": False, "skill_dirs": skill_dirs}
        return Host(home=tmp_path / "home", **options)

    return make


class Session:
    """An agent whose model calls one tool, or several in one turn."""

    def __init__(self, agent, script, person):
        self.agent, self.script, self.person = agent, script, person

    async def __call__(self, name, /, **arguments):
        (result,) = await self.all((name, arguments))
        return result

    async def all(self, *calls):
        self.script.turns += [Turn(tool_calls=[*calls]), "done"]
        ran = await self.agent.invoke("go")
        assert ran.status == "completed", ran.error
        return [one for one in ran.messages if one.role == "tool"]

    async def offered(self):
        """Return the names of the tools of servers that a model sees now."""
        self.script.turns.append("done")
        await self.agent.invoke("go")
        return [one.name for one in self.tools()]

    def tools(self):
        """Return the tools of servers that the model saw last."""
        return [one for one in self.script.requests[-1].tools if one.name != "mcp__resource"]

    async def wait_for(self, *names):
        """Return once a model sees these tools. No turn waits for a server, so several may be needed."""
        await until(lambda: self._sees(names))

    async def wait_for_log(self, caplog, *parts):
        """Return once a message with all of these parts was logged."""
        await until(lambda: is_logged(caplog, parts))

    async def wait_for_request(self, number):
        """Return once the person was asked so often."""
        await until(lambda: self._was_asked(number))

    async def wait_for_result(self, name, text):
        """Return once a call of a tool has this result. A call fails while the end of its server is not yet known."""
        await until(lambda: self._returns(name, text))

    async def _returns(self, name, text):
        return (await self(name)).text == text

    async def _sees(self, names):
        return set(names) <= set(await self.offered())

    async def _was_asked(self, number):
        return len(self.person.requests) >= number


async def is_logged(caplog, parts):
    return any(all(part in one for part in parts) for one in caplog.messages)


async def until(condition):
    """Return once a condition holds. Nothing announces it to a test."""
    with anyio.fail_after(30):
        while not await condition():  # noqa: ASYNC110
            await anyio.sleep(0.02)


@pytest.fixture
def session(person, script, tmp_path):
    """Open an agent in a host, and wait until a model sees these tools."""

    @asynccontextmanager
    async def opened(host, *names, **options):
        async with Agent(host, folder=tmp_path, **{"approver": person, **options}) as agent:
            found = Session(agent, script, person)
            await found.wait_for(*names)
            yield found

    return opened


class Served:
    """The address of a server in a thread, and the headers of its requests."""

    def __init__(self):
        self.requests = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def app(self):
        server = MCPServer("things")

        @server.tool()
        def add(a: int, b: int = 1) -> int:
            """Add two numbers."""
            return a + b

        @server.tool()
        def flood(size: int) -> str:
            """Return much."""
            return "x" * size

        streamable = server.streamable_http_app()
        app = Starlette(
            routes=[
                Route("/moved", self.moved, methods=["GET", "POST"]),
                Route("/packed", self.packed, methods=["GET", "POST"]),
                Mount("/older", server.sse_app()),
                Mount("/", streamable),
            ],
            lifespan=lambda _: server.session_manager.run(),
        )

        async def noting(scope, receive, send):
            if scope["type"] == "http":
                self.requests.append({key.decode(): value.decode() for key, value in scope["headers"]})
            await app(scope, receive, send)

        return noting

    async def moved(self, request):
        return PlainTextResponse(status_code=307, headers={"location": "http://127.0.0.1:9/mcp"})

    async def packed(self, request):
        headers = {"content-encoding": "gzip", "content-type": "application/json"}
        return Response(gzip.compress(b"{}"), headers=headers)


@pytest.fixture(scope="module")
def served():
    one = Served()
    server = uvicorn.Server(uvicorn.Config(one.app(), log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([one.socket],))
    thread.start()
    yield one
    server.should_exit = True
    thread.join()


class Program:
    """A program that uses one server, of which it accepts everything."""

    def __init__(self, host):
        self.ctx = host.context_for("mcp")

    async def list(self):
        return await self.ctx.dispatch("mcp.list", {"server": "things"})

    async def accept(self):
        listed = await self.list()
        request = {"catalog": listed["offered"], "changes": listed["changes"]}
        await self.ctx.dispatch("mcp.accept", {"server": "things", **request})
        return listed["offered"]

    async def call(self, catalog, tool="go", server="things", **arguments):
        request = {"server": server, "catalog": catalog, "tool": tool, "arguments": arguments}
        return await self.ctx.dispatch("mcp.call", request)


@pytest.fixture
async def program(open_host, raw_server):
    """Return a function that opens a host whose server answers the requests of a method with this code."""

    async def opened(body="return text('gone')", method="tools/call", limits=None, **settings):
        lines = body.replace("\n", "\n        ")
        code = f"""
def answer(method, params, number):
    if method == "{method}":
        {lines}
    return default(method, params)
"""
        host = open_host({"things": raw_server(code, **settings)}, max_message_bytes=65_536, **limits or {})
        hosts.append(host)
        return Program(await host.__aenter__())

    hosts = []
    yield opened
    for host in hosts:
        await host.__aexit__(None, None, None)
