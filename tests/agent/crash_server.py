"""Fork hosts that can be killed. A line ``HOME LAST WINDOW`` on standard input starts one; its process id is printed.

Each continues the same session: first the interrupted run, then new ones. Everything is imported once, so that a host
starts within a few milliseconds. Syncs are noted, so that a test can drop what was not synced, as a power failure does.
"""

import os
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

import anyio
import anyio._backends._asyncio  # before the fork
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.messages import AssistantMessage, ToolResultMessage, UserMessage
from sideband.ops import Level, OpFamily, op
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn


class Mark(BaseModel):
    mark: str


def note(home, name, text):
    """Append one line atomically."""
    descriptor = os.open(home / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


@op("bell.ring", level=Level.CONTROLLED, record=["mark"])
async def ring(params: Mark, ctx) -> str:
    """Ring: an effect that can be counted."""
    note(ctx.home, "effects", params.mark)
    time.sleep(0.005)  # noqa: ASYNC251  also in a host that cannot do anything else meanwhile
    return "ding " * 50


@tool("bell")
async def bell(params: Mark, ctx) -> str:
    """Ring the bell."""
    return await ctx.dispatch("bell.ring", {"mark": params.mark})


@tool("direct", level=Level.CONTROLLED)
async def direct(params: Mark, ctx) -> str:
    """Cause an effect without an op."""
    note(ctx.home, "effects", params.mark)
    return "done"


def watch_syncs(home):
    """Note the size of each file when it is synced."""
    sync = os.fdatasync

    def noting(descriptor):
        size = os.fstat(descriptor).st_size
        sync(descriptor)
        note(home, "synced", f"{size} {Path(f'/proc/self/fd/{descriptor}').readlink()}")

    os.fdatasync = noting


def play(request):
    """Play three turns with two effects each, then an answer, derived from the conversation without a counter."""
    at = max(n for n, one in enumerate(request.messages) if isinstance(one, UserMessage) and one.source == "user")
    task = request.messages[at].text
    answered = sum(isinstance(one, AssistantMessage) for one in request.messages[at:])
    if answered == 3:
        return f"done: {task}"
    return Turn(tool_calls=[("bell", {"mark": f"{task}-{answered}-b"}), ("direct", {"mark": f"{task}-{answered}-d"})])


PLUGINS = (
    Plugin("op", "llm", sideband_llm.plugin),
    Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    Plugin("op", "bell", SimpleNamespace(sideband_ops=lambda: OpFamily("bell", (ring,)))),
    Plugin("tool", "bell", bell),
    Plugin("tool", "direct", direct),
)


def is_task(entry):
    return entry.type == "message" and entry.message.role == "user" and entry.message.source == "user"


async def main(home, last, window):
    def send(request):
        note(home, "sent", sum(isinstance(one, ToolResultMessage) for one in request.messages))
        time.sleep(0.01)  # a model takes longer than its host, so that many kills hit it
        return play(request)

    provider = Plugin("provider", "scripted", Scripted([send], repeat=True))
    compaction = {"reserve": window // 2, "keep": window // 4}
    settings = {"agent": {"model": "scripted:test", "context_window": window, "compaction": compaction}}

    def watch(event):
        if event.hook == "message_end" and event.message["role"] == "user":
            note(home, "acknowledged", event.message["content"][0]["text"])

    watch_syncs(home)
    async with Host(home=home, settings=settings, plugins=[*PLUGINS, provider], autoload=False) as host:
        agent = Agent(host, on_event=watch)
        found = [one.id for one in await agent.sessions.list()]
        agent = Agent(host, session=found[0] if found else None, on_event=watch)
        async with agent:
            while True:
                await agent.resume()
                tasks = len({one.message.text for one in agent.session.path() if is_task(one)})
                if tasks >= last:
                    break
                await agent.invoke(f"task-{tasks}")
    note(home, "finished", "yes")


def serve():
    for line in sys.stdin:
        home, last, window = line.split()
        pid = os.fork()
        if pid == 0:
            os.close(0)
            try:
                anyio.run(main, Path(home), int(last), int(window))
            except BaseException:  # noqa: BLE001  any error must be reported to the test
                note(Path(home), "failures", traceback.format_exc())
            os._exit(0)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(status, flush=True)


if __name__ == "__main__":
    serve()
