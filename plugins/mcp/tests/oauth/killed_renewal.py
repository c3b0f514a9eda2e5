"""Renew the token of the server `things`, and be killed before a write of the tokens.

python killed_renewal.py HOME URL NUMBER
"""

import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import sideband_mcp.plugin
import sideband_secrets.plugin
import sideband_store_sqlite.plugin
import time_machine
from sideband import Host, Plugin


async def main(home, url, number):
    def watch(event, arguments):
        nonlocal number
        if event == "os.rename" and str(arguments[1]).endswith("store.json"):
            number -= 1
            if number == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    server = {"url": url, "local": True, "oauth": True}
    secrets = {"backend": "encrypted", "key": "file"}
    plugins = [
        Plugin("op", "mcp", sideband_mcp.plugin),
        Plugin("op", "secrets", sideband_secrets.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    settings = {"plugins": {"mcp": {"servers": {"things": server}}, "secrets": secrets}}
    async with Host(home=Path(home), settings=settings, plugins=plugins, autoload=False) as host:
        sys.addaudithook(watch)
        await host.op("mcp.list", {"server": "things"})


with time_machine.travel(datetime.now(UTC) + timedelta(days=365)):
    anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
