"""A host whose tools are offered to the client of the official SDK."""

from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
import sideband_store_sqlite.plugin
from mcp.client import Client
from mcp_types import ElicitResult
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.asking import QuestionOption, UserQuestion
from sideband.hooks import hookimpl
from sideband.ledger import query
from sideband.messages import ImagePart
from sideband.ops import Level
from sideband.tools import ToolOutput, tool
from sideband_mcp._serving._client_session import Limits
from sideband_mcp._serving._client_sessions import ClientSessions
from sideband_mcp._serving._offer import Offer
from sideband_mcp._serving._server import make_server

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
NEWER = "2026-07-28"


class Text(BaseModel):
    text: str = ""
    times: int = 1


class Nothing(BaseModel):
    pass


class Door:
    """What tools and tests wait for."""

    def __init__(self):
        self.began, self.open, self.left = anyio.Event(), anyio.Event(), anyio.Event()


def tools(door):
    """Return the tools of the host."""

    @tool("things.echo", read_only=True)
    async def echo(params: Text, ctx) -> str:
        """Return the text."""
        return params.text * params.times

    @tool("things.data")
    async def data(params: Nothing, ctx) -> dict:
        """Return data."""
        return {"city": "Bern", "days": [1, 2]}

    @tool("things.picture")
    async def picture(params: Nothing, ctx) -> ImagePart:
        """Return an image."""
        return ImagePart(data=PIXEL, media_type="image/png")

    @tool("things.fail")
    async def fail(params: Nothing, ctx) -> str:
        """Fail."""
        raise LookupError("no such thing")

    @tool("things.long")
    async def long(params: Nothing, ctx) -> ToolOutput:
        """Return more than fits."""
        return ToolOutput({"text": "long " * 60_000})

    @tool("things.work")
    async def work(params: Nothing, ctx) -> str:
        """Report progress."""
        for number in range(1, 4):
            await ctx.progress(current=number, total=3, message=f"step {number}")
        return "worked"

    @tool("things.wait")
    async def wait(params: Nothing, ctx) -> str:
        """Wait until the test opens the door."""
        door.began.set()
        try:
            await door.open.wait()
        finally:
            door.left.set()
        return "waited"

    @tool("things.change", level=Level.RESTRICTED)
    async def change(params: Text, ctx) -> str:
        """Change something."""
        return f"changed {params.text}"

    @tool("things.ask")
    async def ask(params: Nothing, ctx) -> str:
        """Ask the user."""
        options = (QuestionOption("8443"), QuestionOption("9443", "as in production"))
        port, name = await ctx.ask([UserQuestion("Which port?", options), UserQuestion("Which name?")])
        return f"{port.chosen} {port.text} {name.text}"

    @tool("things.ask_both")
    async def ask_both(params: Nothing, ctx) -> str:
        """Ask the user two questions at the same time."""
        answers = []

        async def ask_one(text):
            answers.extend(await ctx.ask([UserQuestion(text)]))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_one, "First?")
            tasks.start_soon(ask_one, "Second?")
        return " ".join(sorted(one.text for one in answers))

    @tool("things.secret", explicit=True)
    async def secret(params: Nothing, ctx) -> str:
        """Only for those who name it."""
        return "secret"

    return [echo, data, picture, fail, long, work, wait, change, ask, ask_both, secret]


class Guard:
    """A guard that decides what the test says."""

    decide = None

    @hookimpl
    def tool_call(self, event):
        return type(self).decide(event) if type(self).decide else None


class User:
    """The user of a client, who answers forms with the contents given, and keeps what was shown."""

    def __init__(self):
        self.asked, self.answers = [], []

    async def __call__(self, context, params):
        self.asked.append(params)
        answer = self.answers.pop(0)
        if callable(answer):
            answer = await answer()
        return answer if isinstance(answer, ElicitResult) else ElicitResult(action="accept", content=answer)


class Serving:
    """A server with its host, and what connects to it."""

    def __init__(self, host, sessions, door):
        self.host, self.sessions, self.door = host, sessions, door
        self.server, self.user = make_server(sessions), User()

    @asynccontextmanager
    async def client(self, mode, *, asks=True, **options):
        callback = {"elicitation_callback": self.user} if asks else {}
        async with Client(self.server, mode=mode, cache=None, **callback, **options) as client:
            yield client

    async def records(self, op="tool.call"):
        return await query(self.host.ledger.folder, op=op)


@pytest.fixture
def guard():
    Guard.decide = None
    yield Guard
    Guard.decide = None


@pytest.fixture
def serving(tmp_path, guard):
    """Open a server of the tools `things`, or of an offer."""

    @asynccontextmanager
    async def opened(offer=None, *, settings=None, plugins=(), skill_dirs=(), lasting=False, **limits):
        door = Door()
        found = [
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("guard", "gate", guard),
            Plugin("tool", "things", SimpleNamespace(sideband_tools=lambda: tools(door))),
            *plugins,
        ]
        host = Host(
            home=tmp_path / "home", settings=settings or {}, plugins=found, autoload=False, skill_dirs=skill_dirs
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(host)
            chosen = await Offer.of(host, **(offer or {"tools": ["things.*"], "skills": None}))
            await host.tools.view()
            sessions = await stack.enter_async_context(
                ClientSessions.opened(host, chosen, Limits(**limits), lasting=lasting)
            )
            with anyio.fail_after(60):
                yield Serving(host, sessions, door)

    return opened


@pytest.fixture(params=["legacy", NEWER], ids=["older", "newer"])
def mode(request):
    return request.param
