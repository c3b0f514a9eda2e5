"""A run keeps the hooks and guards that it began with, while the host reloads their plugin."""

import sys
from textwrap import dedent

import anyio
import pytest
from pydantic import BaseModel
from sideband import Host
from sideband.tools import tool
from sideband_agent import Agent

pytestmark = pytest.mark.anyio

GUARD = """
    from sideband.hooks import Deny, hookimpl

    class Guard:
        @hookimpl
        def tool_call(self, event):
            return Deny("version {n}") if event.tool == "denied" else None

    def sideband_guards():
        return Guard
"""
MODEL = """
    from sideband_scripted import Scripted, Turn

    CALLS = [Turn(tool_calls=[("wait", {})]), Turn(tool_calls=[("denied", {})]), "done"]

    def sideband_providers():
        return [Scripted(CALLS * 2, name="lines", model="test")]
"""


class Nothing(BaseModel):
    pass


@tool("denied")
async def denied(params: Nothing, ctx) -> str:
    """Never run."""
    return "it ran"


def write(folder, name, kind, source, number):
    (folder / f"{name}.py").write_text(dedent(source).replace("{n}", str(number)))
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}.0\n")
    (info / "entry_points.txt").write_text(f"[sideband.v1.{kind}]\n{name.rpartition('_')[2]} = {name}\n")


async def test_run_keeps_the_guard_that_it_began_with(tmp_path, monkeypatch):
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    write(site, "reloaded_careful", "guard", GUARD, 1)
    write(site, "reloaded_lines", "provider", MODEL, 1)
    reload_now = anyio.Event()
    reloaded = anyio.Event()

    @tool("wait")
    async def wait(params: Nothing, ctx) -> str:
        """Wait for the reload."""
        reload_now.set()
        await reloaded.wait()
        return "waited"

    async with Host(home=tmp_path / "home") as host, Agent(host, model="lines:test", own_tools=[wait, denied]) as agent:
        results = []

        async def run():
            results.append(await agent.invoke("go on"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await reload_now.wait()
            write(site, "reloaded_careful", "guard", GUARD, 2)
            await host.reload("careful")
            reloaded.set()
        results.append(await agent.invoke("go on"))
    texts = [message.text for result in results for message in result.messages if message.role == "tool"]
    assert ["version 1" in texts[1], "version 2" in texts[3]] == [True, True], texts
    for name in ("reloaded_careful", "reloaded_lines"):
        sys.modules.pop(name, None)
