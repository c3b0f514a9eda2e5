"""Install the packages of a server, until this is killed. Usage: harness_installing.py HOME SERVER."""

import json
import sys
from pathlib import Path

import anyio
import sideband_mcp.plugin
import sideband_sandbox.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin


async def main(home, server):
    settings = {"grants": {"plugin:mcp": ["mcp:server=things"]}, "plugins": {"mcp": {"servers": {"things": server}}}}
    plugins = [
        Plugin("op", "mcp", sideband_mcp.plugin),
        Plugin("sandbox", "sandbox", sideband_sandbox.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    async with Host(home=home, settings=settings, plugins=plugins, autoload=False) as host:
        ctx = host.context_for("mcp")
        listed = await ctx.dispatch("mcp.list", {"server": "things"})
        request = {"packages": listed["install"], "changes": listed["packages"]}
        await ctx.dispatch("mcp.install", {"server": "things", **request})


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), json.loads(sys.argv[2]))
