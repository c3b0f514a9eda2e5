"""Work on a task in a repository with a scripted model: ``coder.py HOME REPOSITORY TASK [KILL]``.

The model's turn depends on the conversation alone, so that an interrupted task continues. With ``KILL``, the process
kills itself when a tool of this name has ended, before its result is stored. With the variable ``ABORT``, the run is
aborted when a tool of this name begins. Prints the results of the tools as JSON.
"""

import json
import os
import signal
import sys
from pathlib import Path

import anyio
import sideband_files.plugin
import sideband_guard_approval.plugin
import sideband_llm.plugin
import sideband_sandbox.plugin
import sideband_shell.plugin
import sideband_store_sqlite.plugin
import sideband_tools.plugin
from sideband import Host, Plugin
from sideband.approvals import Approval
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

TEST = ("command", {"command": "python3 -B -m unittest -q test_prices 2>&1"})
FIX = ("edit", {"path": "prices.py", "edits": [{"old": "price - tax", "new": "price + tax"}]})
NOTES = ("write", {"path": "docs/notes.md", "content": "The sign was wrong.\n"})


def call(*calls):
    return Turn(tool_calls=list(calls))


TASKS = {
    "fix": [
        call(("grep", {"pattern": "def total"})),
        call(("read", {"path": "prices.py"}), ("read", {"path": "test_prices.py"})),
        call(TEST),
        call(FIX),
        call(NOTES),
        call(TEST),
        "The tests pass.",
    ],
    "again": [
        call(("read", {"path": "prices.py"})),
        call(FIX),
        call(TEST),
        call(("edit", {"path": "prices.py", "edits": [{"old": "price + tax", "new": "tax + price"}]})),
        call(NOTES),
        "It is done.",
    ],
    "refused": [
        call(("read", {"path": "prices.py"})),
        call(FIX),
        call(("write", {"path": "../outside.txt", "content": "x"})),
        "I may not change it.",
    ],
}


async def approve(request):
    refused = request.subject == "files.write" and "REFUSE" in os.environ
    return Approval("deny", reason="not on Fridays") if refused else Approval("allow", "once")


async def main(home, repository, task, kill):
    plugins = [
        Plugin("op", "files", sideband_files.plugin),
        Plugin("op", "llm", sideband_llm.plugin),
        Plugin("op", "shell", sideband_shell.plugin),
        Plugin("guard", "approval", sideband_guard_approval.plugin),
        Plugin("sandbox", "sandbox", sideband_sandbox.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("tool", "tools", sideband_tools.plugin),
        Plugin("provider", "scripted", Scripted(TASKS[task], by_history=True)),
    ]
    settings = {"agent": {"model": "scripted:test"}, "plugins": {"approval": {"mode": "assist"}}}

    def watch(event):
        if event.hook == "tool_execution_end" and event.tool == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        if event.hook == "tool_execution_start" and event.tool == os.environ.get("ABORT"):
            agent.abort("the user wants to look")

    async with Host(home=home, settings=settings, plugins=plugins, autoload=False, approver=approve) as host:
        agent = Agent(host, folder=repository, on_event=watch)
        sessions = [one.id for one in await agent.sessions.list()]
        agent = Agent(host, folder=repository, on_event=watch, session=sessions[0] if sessions else None)
        async with agent:
            result = await agent.resume() if sessions else await agent.invoke("Mend the prices.")
            result = result or await agent.invoke("Continue.")
            messages = [one for one in agent.session.messages() if one.role == "tool"]
            print(
                json.dumps(
                    {
                        "status": result.status,
                        "text": result.text,
                        "results": [[one.text, one.is_error, one.metadata.get("effect")] for one in messages],
                    }
                )
            )


if __name__ == "__main__":
    own_home, folder, name, *rest = sys.argv[1:]
    anyio.run(main, Path(own_home), Path(folder), name, rest[0] if rest else None)
