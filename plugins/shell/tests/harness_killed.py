"""A host that is killed when it has started a program in the background. Arguments: its home, and when it is killed."""

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import anyio
import sideband_shell.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.broker import SessionEnds
from sideband.ops import Origin
from sideband_sandbox import SystemSandbox


class KillingSandbox(SystemSandbox):
    """A sandbox that kills the host before a program that it has started is recorded."""

    async def launch_program(self, request):
        program = await super().launch_program(request)
        print(program.pid, flush=True)
        if sys.argv[2] == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        return program


async def main():
    plugins = [
        Plugin("op", "shell", sideband_shell.plugin),
        Plugin("sandbox", "sandbox", SimpleNamespace(sideband_sandboxes=lambda: [KillingSandbox()])),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    async with Host(home=Path(sys.argv[1]), plugins=plugins, autoload=False) as host:
        hooks = host.hooks.derive(lambda context: context)
        hooks.session_ends = SessionEnds()
        params = {"binary": "sleep", "args": ["600"]}
        context = host.context_for("tools")
        grants = ["shell:binary=sleep"]
        found = await context.dispatch_for(
            Origin(session="s1"), "shell.start", params, capabilities=grants, hooks=hooks
        )
        print(found["program"], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


anyio.run(main)
