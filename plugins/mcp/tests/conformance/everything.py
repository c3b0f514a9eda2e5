"""The tools that the official conformance suite calls, offered as this project offers any tools.

Usage: everything.py. It prints its address, and serves until its standard input is closed. With ``--stdio``, it serves
its standard input and output instead.
"""

import socket
import sys
import tempfile
from base64 import b64decode
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import anyio
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.asking import UserQuestion
from sideband.messages import ImagePart, TextPart
from sideband.tools import tool
from sideband_mcp._serving import _address
from sideband_mcp._serving._client_session import Limits
from sideband_mcp._serving._client_sessions import ClientSessions
from sideband_mcp._serving._offer import Offer
from sideband_mcp._serving._server import make_server
from sideband_mcp._serving._streams import serve_streams
from sideband_serving import claimed_streams

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
TOKEN = "token-of-the-suite"


class Nothing(BaseModel):
    pass


class Message(BaseModel):
    message: str


@tool("test_simple_text")
async def simple_text(params: Nothing, ctx) -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@tool("test_image_content")
async def image_content(params: Nothing, ctx) -> ImagePart:
    """Return an image."""
    return ImagePart(data=PIXEL, media_type="image/png")


@tool("test_multiple_content_types")
async def multiple(params: Nothing, ctx) -> list:
    """Return a text and an image."""
    return [TextPart(text="Multiple content types test:"), ImagePart(data=PIXEL, media_type="image/png")]


@tool("test_error_handling")
async def error_handling(params: Nothing, ctx) -> str:
    """Fail."""
    raise ValueError("This tool intentionally returns an error for testing")


@tool("test_tool_with_progress")
async def with_progress(params: Nothing, ctx) -> str:
    """Report progress."""
    for current in (0, 50, 100):
        await ctx.progress(current=current, total=100)
    return "done"


@tool("test_elicitation")
async def elicitation(params: Message, ctx) -> str:
    """Ask the user."""
    (answer,) = await ctx.ask([UserQuestion(params.message)])
    return f"User response: {answer.text}"


TOOLS = [simple_text, image_content, multiple, error_handling, with_progress, elicitation]


NAMES = {
    b"test://static-text": b"skill://test-prompt/references/static.txt",
    b"test://static-binary": b"skill://test-prompt/references/static.png",
    b"test_simple_prompt": b"test-prompt",
}
"""What the suite calls things whose names are chosen here by other rules."""


class _Adapted:
    """The suite sends no token and has names of its own, so this adds and translates them."""

    def __init__(self, inner):
        self.inner = inner

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        headers = [one for one in scope["headers"] if one[0] != b"content-length"]
        headers.append((b"authorization", f"Bearer {TOKEN}".encode()))

        async def translated():
            message = await receive()
            if message["type"] == "http.request":
                for theirs, ours in NAMES.items():
                    message["body"] = message["body"].replace(theirs, ours)
            return message

        await self.inner({**scope, "headers": headers}, translated, send)


async def main(streams):
    plugins = [
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("loader", "skills", sideband_skills.plugin),
        Plugin("tool", "test", SimpleNamespace(sideband_tools=lambda: TOOLS)),
    ]
    folder = Path(tempfile.mkdtemp())
    skill = folder / "skills" / "test-prompt"
    (skill / "references").mkdir(parents=True)
    (skill / "references" / "static.txt").write_text("This is the content of the static text resource.")
    (skill / "references" / "static.png").write_bytes(b64decode(PIXEL))
    (skill / "SKILL.md").write_text("---\nname: test-prompt\ndescription: A prompt.\n---\nThis is a prompt.\n")
    host = Host(home=folder / "home", plugins=plugins, autoload=False, skill_dirs=[folder / "skills"])
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(host)
        offer = await Offer.of(host, ["test_*"], ["test-prompt"])
        opened = ClientSessions.opened(host, offer, Limits(), lasting=streams is not None)
        sessions = await stack.enter_async_context(opened)
        await host.tools.view()
        if streams is not None:
            await serve_streams(make_server(sessions), streams, largest=1 << 20)
            return
        with socket.create_server(("127.0.0.1", 0)) as listening:
            address = _address.Address(listening, TOKEN)
            app = _Adapted(_address.make_app(make_server(sessions), sessions, address))
            print(address.url, flush=True)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_address.serve_app, app, address)
                await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
                tasks.cancel_scope.cancel()


if "--stdio" in sys.argv:
    with claimed_streams() as claimed:
        anyio.run(main, claimed)
else:
    anyio.run(main, None)
