"""Let an agent call a server, and die by SIGKILL once the server works. Usage: harness_killed.py HOME SERVER MARK."""

import json
import os
import signal
import sys
from pathlib import Path

import anyio
import sideband_llm.plugin
import sideband_mcp.plugin
import sideband_sandbox.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn


async def die_once(mark):
    while not mark.exists():  # noqa: ASYNC110
        await anyio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


async def main(home, server, mark):
    script = Scripted([])
    settings = {
        "agent": {"model": "scripted:test"},
        "grants": {"plugin:mcp": ["mcp:server=things"]},
        "plugins": {"mcp": {"servers": {"things": server}}},
    }
    plugins = [
        Plugin("op", "llm", sideband_llm.plugin),
        Plugin("op", "mcp", sideband_mcp.plugin),
        Plugin("tool", "mcp", sideband_mcp.plugin.servers),
        Plugin("provider", "scripted", script),
        Plugin("sandbox", "sandbox", sideband_sandbox.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    async with (
        Host(home=home, settings=settings, plugins=plugins, autoload=False) as host,
        Agent(host, folder=home.parent) as agent,
        anyio.create_task_group() as tasks,
    ):
        print(agent.session.id, flush=True)
        names = []
        while "things__go" not in names:
            script.turns.append("not yet")
            await agent.invoke("wait")
            names = [one.name for one in script.requests[-1].tools]
        script.turns.append(Turn(tool_calls=[("things__go", {})]))
        tasks.start_soon(die_once, mark)
        await agent.invoke("go")


anyio.run(main, Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3]))
