"""Fork hosts that can be killed. Several may run at once, with the same home.

An order is one JSON object on a line of standard input. ``{"wait": PID}`` waits for a host and prints its exit status.
Any other order starts a host, and prints its process id: ``{"home", "url", "slot", "last", "window", "keys", "ends"}``.
Each slot has its own session, which the host continues until it has ``last`` tasks, and with a small ``window`` until
it is compacted. Meanwhile it runs calls and ops with the keys in ``keys``, which other hosts use as well: each once if
it ``ends``, else in any order until it is killed.

A task calls a skill that posts to the server at ``url``, and tools that leave it to child agents.
"""

import json
import os
import random
import sys
import time
import traceback
from pathlib import Path
from secrets import token_hex

import anyio
import preloaded  # noqa: F401
import sideband_http.plugin
import sideband_llm.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import CallRequest, Host, Plugin, SidebandError
from sideband.messages import AssistantMessage, UserMessage
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

GRANT = "http:host=127.0.0.1"
POST = "poster__post"
LARGE_WINDOW = 1_000_000
CHILD_ENDS_WITH = "finished"
RELAYED = "relayed "
TURNS = ([POST], [POST, POST], ["delegate", POST], ["errand"], ["delegate", "delegate"], ["relay"])


class Mark(BaseModel):
    mark: str


def note(home, name, text):
    """Append one line atomically."""
    descriptor = os.open(home / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


async def by_child(params, ctx):
    return (await ctx.spawn_child(params.mark, tools=["poster.post"])).text


@tool("delegate", resume="replay")
async def delegate(params: Mark, ctx) -> str:
    """Leave posting to a child agent, which continues after an interruption."""
    return await by_child(params, ctx)


@tool("relay", resume="replay")
async def relay(params: Mark, ctx) -> str:
    """Leave posting to the child agent of a child agent."""
    return (await ctx.spawn_child(f"{RELAYED}{params.mark}", tools=["delegate", "poster.post"])).text


@tool("errand")
async def errand(params: Mark, ctx) -> str:
    """Leave posting to a child agent, in a tool whose interrupted calls are not run again."""
    return await by_child(params, ctx)


PLUGINS = (
    Plugin("op", "http", sideband_http.plugin),
    Plugin("op", "llm", sideband_llm.plugin),
    Plugin("loader", "skills", sideband_skills.plugin),
    Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    Plugin("tool", "delegate", delegate),
    Plugin("tool", "relay", relay),
    Plugin("tool", "errand", errand),
)


def player(url):
    """Return a model that chooses its tool calls at random, each with a mark that no other call has.

    In a child the marks are always the same, so that a second child for the same task would repeat the effects.
    """

    def call(name, mark):
        return name, {"url": url, "mark": mark} if name == POST else {"mark": mark}

    def play(request):
        time.sleep(0.005)  # a model takes longer than its host, so that some kills hit it
        at = max(n for n, one in enumerate(request.messages) if isinstance(one, UserMessage) and is_task(one))
        task, of_child = request.messages[at].text, request.messages[at].source == "agent"
        has_answered = any(isinstance(one, AssistantMessage) for one in request.messages[at:])
        if has_answered and (of_child or random.random() < 0.3):
            return CHILD_ENDS_WITH if of_child else f"done: {task}"
        if task.startswith(RELAYED):
            return Turn(tool_calls=[call("delegate", task.removeprefix(RELAYED))])
        if of_child:
            return Turn(tool_calls=[call(POST, f"{task}-{number}") for number in range(2)])
        return Turn(tool_calls=[call(name, f"{task}-{token_hex(4)}") for name in random.choice(TURNS)])

    return play


def is_task(message):
    return message.role == "user" and message.source in {"user", "agent"}


async def main(order):
    home, window = Path(order["home"]), order["window"]
    compaction = {"reserve": window // 2, "keep": window // 4}
    settings = {
        "agent": {"model": "scripted:test", "context_window": window, "compaction": compaction},
        "policy": {"isolation": "none"},
        "grants": {"poster": [GRANT]},
    }
    provider = Plugin("provider", "scripted", Scripted([player(order["url"])], repeat=True))
    skills = [home.parent / "skills"]
    async with (
        Host(home=home, settings=settings, plugins=[*PLUGINS, provider], autoload=False, skill_dirs=skills) as host,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(use_keys, host, order)
        await converse(host, home, order)
        name = host.ledger.new_effect_id().rpartition("-")[0]
    note(home, "finished", name)


async def converse(host, home, order):
    slot = order["slot"]

    def watch(event):
        if event.hook == "message_end" and event.message["role"] == "user":
            note(home, f"acknowledged-{slot}", event.message["content"][0]["text"])

    found = [one.id for one in await Agent(host).sessions.list() if one.channel == slot]
    async with Agent(host, session=found[0] if found else None, channel=slot, on_event=watch) as agent:
        while True:
            await agent.resume()
            tasks = len(
                {one.message.text for one in agent.session.path() if one.type == "message" and is_task(one.message)}
            )
            is_compacted = any(one.type == "compaction" for one in agent.session.path())
            if tasks >= order["last"] and (is_compacted or order["window"] >= LARGE_WINDOW):
                return
            await agent.invoke(f"{slot}{tasks}")


async def use_keys(host, order):
    """Run calls and ops under keys. Each key names one call or op, whichever host uses it first."""
    keys = list(order["keys"])
    while keys:
        random.shuffle(keys)
        for key in keys:
            mark = f"{order['url']}/{key}"
            try:
                if key.startswith("call"):
                    arguments = {"url": order["url"], "mark": key}
                    await host.run(CallRequest("poster.once", arguments, key=key, grants=[GRANT], timeout=60))
                else:
                    await host.op("http.post", {"url": mark}, key=key, grants=[GRANT])
            except SidebandError as error:
                note(Path(order["home"]), "refused", f"{key} {error.code}")
        if order["ends"]:
            return


def serve():
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            print(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1]), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            os.close(0)
            try:
                anyio.run(main, order)
            except BaseException:  # noqa: BLE001  any error must be reported to the test
                note(Path(order["home"]), "failures", traceback.format_exc())
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    serve()
