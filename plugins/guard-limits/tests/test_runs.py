"""Runs of an agent: which effects of a skill and of tools count, and what the model reads."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import sideband_http.plugin
import sideband_llm.plugin
import sideband_skills.plugin
from pydantic import BaseModel
from sideband import Plugin
from sideband.ops import Level
from sideband.tools import ToolContext, tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio

SKILL = '''
from sideband.skill import http, tool

@tool
async def get(url: str, times: int) -> int:
    """Get a URL so many times."""
    for _ in range(times):
        await http.get(url)
    return times

@tool
async def post(url: str, times: int) -> int:
    """Post to a URL so many times."""
    for _ in range(times):
        await http.post(url)
    return times
'''
MANIFEST = """---
name: web
description: Sends requests.
metadata:
  sideband.capabilities: http:host=127.0.0.1
---
"""


@pytest.fixture
def server():
    """A server that counts its requests by method."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.server.seen.append(self.command)
            self.send_response(204)
            self.end_headers()

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    one = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    one.seen = []
    one.url = f"http://127.0.0.1:{one.server_port}/"
    thread = threading.Thread(target=one.serve_forever, args=[0.05])
    thread.start()
    yield one
    one.shutdown()
    thread.join()
    one.server_close()


class Nothing(BaseModel):
    pass


@tool("memo", level=Level.CONTROLLED)
async def memo(params: Nothing, ctx: ToolContext) -> str:
    """Write a memo."""
    return "written"


@pytest.fixture
def run(tmp_path, make_host):
    """Return a function that runs an agent whose model makes one call per turn, and returns the results it reads."""
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "SKILL.md").write_text(MANIFEST)
    (folder / "tools.py").write_text(SKILL)

    async def run(*calls, **config):
        plugins = [
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("op", "http", sideband_http.plugin),
            Plugin("loader", "skills", sideband_skills.plugin),
            Plugin("provider", "scripted", Scripted([*(Turn(tool_calls=[call]) for call in calls), "done"])),
            Plugin("tool", "memo", memo),
        ]
        options = {"skill_dirs": [folder], "grants": {"web": ["http:host=127.0.0.1"]}}
        async with make_host(*plugins, options=options, **config) as host, Agent(host, model="scripted:m") as agent:
            result = await agent.invoke("go on")
            assert (result.status, result.text) == ("completed", "done")
            return [(one.text, bool(one.is_error)) for one in result.messages if one.role == "tool"]

    return run


async def test_requests_that_only_read_from_one_host_are_free_and_others_count(run, server):
    get, post = ("web__get", {"url": server.url, "times": 3}), ("web__post", {"url": server.url, "times": 1})
    results = await run(get, post, get, post, get, restricted="1/h", controlled="1/h")
    assert [is_error for _, is_error in results] == [False, False, False, True, False]
    assert server.seen == [*["GET"] * 3, "POST", *["GET"] * 6]


async def test_model_reads_which_limit_is_reached_and_when_to_try_again(run, server):
    ((text, is_error),) = await run(("web__post", {"url": server.url, "times": 5}), restricted="2/h")
    assert is_error
    assert "the limit of 2 effects of the level RESTRICTED per hour is reached for the skill `web`" in text
    assert "try again in 61 min; the user can raise `restricted` in [plugins.guard-limits]" in text
    assert server.seen == ["POST"] * 2


async def test_call_of_a_tool_that_changes_something_itself_counts(run):
    results = await run(*[("memo", {})] * 3, controlled="2/h")
    assert [text for text, _ in results[:2]] == ["written"] * 2
    text, is_error = results[2]
    assert is_error
    assert "the limit of 2 effects of the level CONTROLLED per hour is reached" in text
    assert "try again in 61 min" in text
