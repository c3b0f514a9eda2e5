"""An agent in this process, and the client of the official SDK, connected by a socket."""

import asyncio
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
import sideband_files.plugin
import sideband_guard_approval.plugin
import sideband_llm.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
import sideband_tools.plugin
from acp import PROTOCOL_VERSION, connect_to_agent, text_block
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    Implementation,
    RequestPermissionResponse,
)
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.asking import QuestionOption, UserQuestion
from sideband.hooks import ChatCommand, Transform, hookimpl
from sideband.messages import ImagePart
from sideband.ops import Level
from sideband.tools import tool
from sideband_acp._agent import AcpAgent
from sideband_acp._choices import SessionChoices
from sideband_acp._limits import AcpLimits
from sideband_acp._serve import serve_client
from sideband_acp._sessions import OpenSessions
from sideband_scripted import Scripted
from sideband_serving import ClaimedStreams

SECONDS = 20
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


class Text(BaseModel):
    text: str = ""


class Nothing(BaseModel):
    pass


class Door:
    """What tools and tests wait for."""

    def __init__(self):
        self.began, self.open, self.left = anyio.Event(), anyio.Event(), anyio.Event()


def tools(door):
    """Return tools without effects."""

    @tool("things.echo", read_only=True)
    async def echo(params: Text, ctx) -> str:
        """Return the text."""
        return params.text

    @tool("things.picture", read_only=True)
    async def picture(params: Nothing, ctx) -> ImagePart:
        """Return an image."""
        return ImagePart(data=PIXEL, media_type="image/png")

    @tool("things.work", read_only=True)
    async def work(params: Nothing, ctx) -> str:
        """Report progress."""
        await ctx.progress(current=1, total=3, message="half")
        return "worked"

    @tool("things.wait", read_only=True)
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

    @tool("things.ask", read_only=True)
    async def ask(params: Nothing, ctx) -> str:
        """Ask the user."""
        options = (QuestionOption("8443"), QuestionOption("9443", "as in production"))
        port, name = await ctx.ask([UserQuestion("Which port?", options), UserQuestion("Which name?")])
        return f"{port.chosen} {port.text} {name.text}"

    return [echo, picture, work, wait, change, ask]


class Hooks:
    """The slash commands of a plugin."""

    @hookimpl
    def chat_commands(self, event):
        async def say(text, ctx):
            if text == "fail":
                raise LookupError("no such thing")
            return f"you said {text} in {event.channel}"

        return [ChatCommand("say", "Say something", say), ChatCommand("greet", "Greet", usage="[name]")]

    @hookimpl
    def input(self, event):
        return Transform(event.text.replace("/greet ", "Greetings to ")) if event.text.startswith("/greet ") else None


class User:
    """The client: notes what it is sent, and answers questions with the answers given."""

    def __init__(self):
        self.updates, self.asked, self.forms, self.answers = [], [], [], []

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **_):
        self.updates.append((session_id, update))

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append((session_id, tool_call, options))
        answer = self.answers.pop(0)
        if callable(answer):
            answer = await answer()
        if answer is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=answer))

    async def create_elicitation(self, message, mode, **_):
        self.forms.append((message, mode))
        answer = self.answers.pop(0)
        return answer if isinstance(answer, BaseModel) else AcceptElicitationResponse(action="accept", content=answer)

    def kinds(self):
        return [update.session_update for _, update in self.updates]

    def of(self, kind, session=None):
        return [one for name, one in self.updates if one.session_update == kind and session in (None, name)]

    def text(self, kind="agent_message_chunk", session=None):
        return "".join(one.content.text for one in self.of(kind, session) if one.content.type == "text")

    def shown(self):
        """Return the text of the last question."""
        return self.asked[-1][1].content[0].content.text


class Editor:
    """A connection to the agent, with its host and script."""

    def __init__(self, agent, user, script, door, folder):
        self.agent, self.user, self.script, self.door, self.folder = agent, user, script, door, folder
        self.session = None

    async def initialize(self, *, forms=True):
        elicitation = ElicitationCapabilities(form=ElicitationFormCapabilities()) if forms else None
        return await self.agent.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(elicitation=elicitation),
            client_info=Implementation(name="tester", version="1"),
        )

    async def open(self, folder=None):
        found = await self.agent.new_session(cwd=str(folder or self.folder), mcp_servers=[])
        self.session = self.session or found.session_id
        return found

    async def say(self, *turns, text="go", session=None):
        """Send a prompt, with what the model answers."""
        self.script.turns += turns
        return await self.agent.prompt(session_id=session or self.session, prompt=[text_block(text)])


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def script():
    return Scripted([], context_window=100_000)


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def connect(tmp_path, script, work):
    """Connect a client. `raw` yields the socket instead of a client."""

    @asynccontextmanager
    async def connected(
        *, settings=None, initialized=True, forms=True, raw=False, choices=None, more=(), skills=(), **limits
    ):
        door = Door()
        plugins = [
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("op", "files", sideband_files.plugin),
            Plugin("tool", "tools", sideband_tools.plugin),
            Plugin("tool", "subagent", sideband_tools.plugin.subagent),
            Plugin("tool", "things", SimpleNamespace(sideband_tools=lambda: tools(door))),
            Plugin("guard", "approval", sideband_guard_approval.plugin),
            Plugin("tool", "plan", sideband_guard_approval.plugin.plan),
            Plugin("provider", "scripted", script),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("loader", "skills", sideband_skills.plugin),
            Plugin("hook", "speech", Hooks()),
            *more,
        ]
        tables = {
            "agent": {"model": "scripted:test"},
            "plugins": {"tools": {"commands": False}},
            "grants": {"plugin:tools": [f"files:path={work}/*,mode=read|write,hidden=*"]},
        }
        host = Host(
            home=tmp_path / "home",
            settings={**tables, **(settings or {})},
            plugins=plugins,
            autoload=False,
            skill_dirs=skills,
        )
        mine, theirs = socket.socketpair()
        allowed = AcpLimits(**limits)
        async with AsyncExitStack() as stack:
            stack.enter_context(mine)
            stack.enter_context(anyio.fail_after(SECONDS))
            await stack.enter_async_context(host)
            sessions = await stack.enter_async_context(OpenSessions.opened(host, choices or SessionChoices(), allowed))
            serving = await stack.enter_async_context(anyio.create_task_group())
            streams = ClaimedStreams(mine.fileno(), mine.fileno())
            served = anyio.Event()

            async def serve():
                await serve_client(AcpAgent(sessions), streams, allowed)
                served.set()

            serving.start_soon(serve)
            if raw:
                with theirs:
                    yield SimpleNamespace(socket=theirs, served=served, sessions=sessions, script=script, folder=work)
                await served.wait()
                return
            reader, writer = await asyncio.open_connection(sock=theirs, limit=1 << 26)
            user = User()
            agent = connect_to_agent(user, writer, reader, use_unstable_protocol=True)
            editor = Editor(agent, user, script, door, work)
            editor.sessions, editor.served = sessions, served
            try:
                if initialized:
                    await editor.initialize(forms=forms)
                    await editor.open()
                yield editor
            finally:
                with anyio.CancelScope(shield=True):
                    writer.close()
                    await agent.close()
                    await served.wait()

    return connected


@pytest.fixture
async def editor(connect):
    async with connect() as one:
        yield one
