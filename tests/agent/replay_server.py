"""Fork hosts that kill themselves at chosen points. An order is one JSON object on a line of standard input.

An order is ``{"home", "tool", …}``. The host resumes the session, or begins it with the task ``go``. The
file ``armed`` in the home has the points at which a host kills itself, each once per line. The exit status is printed,
after the process id if the order says ``announced``.
"""

import json
import os
import signal
import sys
import traceback
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import anyio
import preloaded  # noqa: F401
import sideband_http.plugin
import sideband_llm.plugin
import sideband_secrets.plugin
import sideband_skills.plugin
from attrs import evolve
from pydantic import BaseModel
from sideband import CallRequest, Host, Plugin
from sideband.approvals import Approval, ApprovalNeeded
from sideband.hooks import Again, Ask, Deny, Replace, Route, hookimpl
from sideband.messages import ToolResultMessage, Usage
from sideband.ops import Level, OpError, OpFamily, Reconciled, op
from sideband.store import StoreSpec
from sideband.tools import tool
from sideband_agent import Agent
from sideband_agent.sessions import RouteEntry
from sideband_scripted import Scripted, Turn
from sideband_store_sqlite import open_sqlite

AGENTS = []


class Mark(BaseModel):
    mark: str = ""
    size: int = 0


def note(home, name, text):
    """Append one line atomically."""
    descriptor = os.open(home / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


def lines(home, name):
    path = home / name
    return path.read_text().splitlines() if path.exists() else []


def reach(home, point):
    """Kill this host if it reaches an armed point."""
    armed = lines(home, "armed")
    if point in armed:
        armed.remove(point)
        (home / "armed").write_text("".join(f"{one}\n" for one in armed))
        os.kill(os.getpid(), signal.SIGKILL)


@op("till.pay", level=Level.CONTROLLED, requires="till", record=["mark"])
async def pay(params: Mark, ctx) -> str:
    """Pay, which cannot be repeated."""
    reach(ctx.home, f"before {params.mark.partition(' ')[0]}")
    if params.mark.startswith("fail"):
        raise ValueError("out of paper")
    note(ctx.home, "effects", params.mark)
    reach(ctx.home, f"after {params.mark.partition(' ')[0]}")
    return f"receipt {len(lines(ctx.home, 'effects'))}"


async def has_sent(record, ctx):
    return Reconciled(record.params["mark"] in lines(ctx.home, "effects"), "sent")


@op("till.send", level=Level.CONTROLLED, record=["mark"], reconcile=has_sent)
async def send(params: Mark, ctx) -> str:
    """Send, whose outcome can be determined later."""
    reach(ctx.home, f"before {params.mark.partition(' ')[0]}")
    note(ctx.home, "effects", params.mark)
    reach(ctx.home, f"after {params.mark.partition(' ')[0]}")
    return "sent"


@op("till.look", level=Level.SAFE, requires="till", record=["mark"])
async def look(params: Mark, ctx) -> str:
    """Return a number that is never the same, followed by padding."""
    note(ctx.home, "looks", params.mark)
    return f"{len(lines(ctx.home, 'looks'))}{'.' * params.size}"


@op("till.point", level=Level.SAFE)
async def point(params: Mark, ctx) -> None:
    """Do nothing, except at an armed point. At the point `abort`, the run is aborted."""
    if params.mark == "abort" and AGENTS:
        AGENTS[0].abort()
        await anyio.sleep_forever()
    reach(ctx.home, params.mark)


@op("prices.find", level=Level.MONITORED)
async def find(params: Mark, ctx) -> str:
    """Look with the rights of this family."""
    return await ctx.dispatch("till.look", {"mark": "own"}, rights="own")


@op("prices.fix", level=Level.CONTROLLED)
async def fix(params: Mark, ctx) -> str:
    """Look with the rights of this family, and then make a change."""
    try:
        found = await ctx.dispatch("till.look", {"mark": "own"}, rights="own")
    except ApprovalNeeded as error:
        error.nothing_happened = params.mark == "careful"
        raise
    note(ctx.home, "effects", params.mark)
    return f"fixed {found}"


class Nothing(BaseModel):
    pass


class Task(BaseModel):
    task: str
    tools: list[str] | None = None


@tool("twice", resume="replay")
async def twice(params: Nothing, ctx) -> str:
    """Pay twice the same, and look between."""
    first = await ctx.dispatch("till.pay", {"mark": "same"})
    seen = await ctx.dispatch("till.look", {})
    await ctx.dispatch("till.point", {"mark": "between"})
    second = await ctx.dispatch("till.pay", {"mark": "same"})
    return f"{first}, {seen}, {second}"


@tool("slow", resume="replay", timeout=0.1)
async def slow(params: Nothing, ctx) -> str:
    """Exceed the timeout."""
    await anyio.sleep_forever()
    return ""


@tool("delegate", resume="replay")
async def delegate(params: Nothing, ctx) -> str:
    """Leave paying to two children with the same task."""
    results = [await ctx.spawn_child("pay", tools=["payer"]) for _ in range(2)]
    await ctx.dispatch("till.point", {"mark": "between"})
    return ", ".join(f"{one.status} {one.text}" for one in results)


@tool("entrust", resume="replay")
async def entrust(params: Task, ctx) -> str:
    """Leave a task to a child."""
    result = await ctx.spawn_child(params.task, tools=params.tools)
    await ctx.dispatch("till.point", {"mark": "between"})
    return f"{result.status} {result.text} {result.usage.output}"


@tool("asker", resume="replay")
async def asker(params: Nothing, ctx) -> str:
    """Ask the model, outside the conversation."""
    question = {"model": "scripted:test", "messages": [{"role": "user", "content": "think"}]}
    answer = await ctx.dispatch("llm.generate", question, capabilities=["llm"])
    await ctx.dispatch("till.point", {"mark": "between"})
    return answer["content"][0]["text"]


@tool("payer")
async def payer(params: Nothing, ctx) -> str:
    """Pay, in a child."""
    return await ctx.dispatch("till.pay", {"mark": "child"})


@tool("plain")
async def plain(params: Nothing, ctx) -> str:
    """Reach a point, in a tool that does not resume unless it is ordered."""
    await ctx.dispatch("till.point", {"mark": "between"})
    return "done"


PLUGINS = (
    Plugin("op", "http", sideband_http.plugin),
    Plugin("op", "llm", sideband_llm.plugin),
    Plugin("op", "secrets", sideband_secrets.plugin),
    Plugin("loader", "skills", sideband_skills.plugin),
    Plugin("op", "till", SimpleNamespace(sideband_ops=lambda: OpFamily("till", (pay, send, look, point)))),
    Plugin("op", "prices", SimpleNamespace(sideband_ops=lambda: OpFamily("prices", (find, fix), uses=["till"]))),
    Plugin("tool", "twice", twice),
    Plugin("tool", "delegate", delegate),
    Plugin("tool", "entrust", entrust),
    Plugin("tool", "asker", asker),
    Plugin("tool", "payer", payer),
    Plugin("tool", "slow", slow),
)


def watched_store(home):
    """Return a store that reaches a point after each write of a request for approval: `open`, `answered` or `used`."""

    def written(key, value):
        if key.startswith("approval/"):
            state = "used" if value["used"] else "answered" if value["answer"] else "open"
            reach(home, f"stored {state}")

    @asynccontextmanager
    async def opened(folder):
        async with open_sqlite(folder) as store:
            whole = type(store)

            class Watched(whole):
                __slots__ = ()

                async def put(self, key, value, **options):
                    version = await whole.put(self, key, value, **options)
                    written(key, value)
                    return version

                @asynccontextmanager
                async def transaction(self, **options):
                    puts = []
                    async with whole.transaction(self, **options) as inner:

                        async def put(key, value, **options):
                            puts.append((key, value))
                            return await inner.put(key, value, **options)

                        yield SimpleNamespace(
                            put=put,
                            **{name: getattr(inner, name) for name in dir(inner) if name[0] != "_" and name != "put"},
                        )
                    for one in puts:
                        written(*one)

            store.__class__ = Watched
            yield store

    return SimpleNamespace(sideband_stores=lambda: [StoreSpec(name="sqlite", open=opened)])


class Dying:
    """Kills the host when the outcome of a call has been recorded, before its result is stored."""

    def __init__(self, status):
        self.status = status

    @hookimpl
    def effect(self, event):
        if event.op == "tool.call" and event.status == self.status:
            os.kill(os.getpid(), signal.SIGKILL)


class Points:
    """Reaches a point when an agent or a child has saved its run, when its session is closed, and after an effect."""

    def __init__(self, home, abort_on=None):
        self.home, self.abort_on = home, abort_on

    @hookimpl
    def effect(self, event):
        if event.op == self.abort_on:
            AGENTS[0].abort()
        reach(self.home, f"{event.op} of {event.origin.tool}")

    @hookimpl
    def save_point(self, event, ctx):
        reach(self.home, f"saved {'child' if ctx.origin.parent else 'parent'}")

    @hookimpl
    def session_shutdown(self, event, ctx):
        reach(self.home, f"closed {'child' if ctx.origin.parent else 'parent'}")


class Cashier:
    """Has a route that pays twice the same, and reaches points before it, between, and when its reply is stored.

    If ``declines``, another one comes first. If ``ignores``, its handler replies although an effect failed.
    """

    def __init__(self, home, kind):
        self.home, self.kind = home, kind

    @hookimpl
    def routes(self, event):
        first = [Route("decline", "^go$", self.decline, order=-1)] if self.kind == "declines" else []
        return [*first, Route("pay", "^go$", self.ignore if self.kind == "ignores" else self.pay)]

    def decline(self, request, ctx):
        note(self.home, "handled", "decline")

    async def ignore(self, request, ctx):
        try:
            return await self.pay(request, ctx)
        except OpError:
            return "all is well"

    async def pay(self, request, ctx):
        note(self.home, "handled", "pay")
        reach(self.home, "begun")
        first = await ctx.dispatch("till.pay", {"mark": "same"})
        await ctx.dispatch("till.point", {"mark": "between"})
        return f"{first}, {await ctx.dispatch('till.pay', {'mark': 'same'})}"

    @hookimpl
    def route_end(self, event):
        reach(self.home, "replied")


class Checker:
    """Requests a further round as long as it may, and reaches a point with the number of rounds that it may request."""

    def __init__(self, home):
        self.home = home

    @hookimpl
    def answer(self, event):
        note(self.home, "checked", str(event.rounds))
        reach(self.home, f"check {event.rounds}")
        return Again("Once more.") if event.rounds else None


def guards(home, order):
    """Count the questions to guards; deny what the order forbids, and replace the arguments of calls as it says."""

    class Asked:
        @hookimpl
        def tool_call(self, event):
            note(home, "asked", event.tool)
            if event.tool in order.get("ask", []):
                return Ask(f"May {event.tool} run?")
            return Replace(order["replace"]) if "replace" in order else None

        @hookimpl
        def op_call(self, event):
            if event.op in order.get("ask", []) and event.op == "llm.generate":
                return Ask("May the model be asked?")
            if event.op.startswith("till."):
                note(home, "asked", f"{event.op} {event.params.get('mark', '').partition(' ')[0]}")
            if event.op in order.get("ask", []):
                return Ask(f"May {event.op} happen?")
            return Deny("not now") if event.op in order.get("deny", []) else None

    return {"asked": Asked}


async def main(order):
    home = Path(order["home"])

    def play(request):
        """Call the tool as often as ordered, derived from the conversation without a counter.

        A child calls the tool that its task begins with. If it is to entrust, the rest is the task for its own child.
        """
        answered = sum(isinstance(one, ToolResultMessage) for one in request.messages)
        task = request.messages[0].text
        note(home, "asked model", f"{task} {answered}")
        reach(home, f"model {task} {answered}")
        if task == "think":
            return Turn("thought", usage=Usage(input=100, output=10, cost=0.5))
        if task not in {"go", "pay"}:
            name, _, rest = task.partition(" ")
            call = (name, {"task": rest} if name == "entrust" else {})
            if not answered:
                return Turn(tool_calls=[call], usage=Usage(input=100, output=10, cost=0.5))
            return Turn("finished", usage=Usage(input=10, output=1, cost=0.25))
        if answered == order.get("calls", 1):
            return "finished"
        if request.messages[0].text == "pay":
            return Turn(tool_calls=[("payer", {})])
        arguments = order.get("arguments", {})
        return Turn(tool_calls=[(order["tool"], {**arguments, "number": answered} if "calls" in order else arguments)])

    async def approver(request):
        note(home, "questions", request.question)
        reach(home, "approver")
        return Approval("allow" if order["approve"] else "deny")

    settings = {
        "agent": {"model": "scripted:test"},
        "policy": {"isolation": "none", **order.get("policy", {})},
        "grants": order.get("skill_grants") or {"buyer": order.get("grants", ["till", "secrets:mode=reveal"])},
    }
    provider = Plugin("provider", "scripted", Scripted([play], repeat=True))
    plugins = [
        *PLUGINS,
        Plugin("store", "sqlite", watched_store(home)),
        provider,
        Plugin("tool", "plain", evolve(plain, resume=order.get("resume", plain.resume))),
        Plugin("hook", "points", Points(home, order.get("abort_on"))),
        *([Plugin("hook", "checker", Checker(home))] if "rounds" in order else []),
        *([Plugin("hook", "cashier", Cashier(home, order["route"]))] if "route" in order else []),
        *([Plugin("hook", "dying", Dying(order["die_on"]))] if "die_on" in order else []),
    ]
    skills = [home.parent / "skills"]
    async with Host(home=home, settings=settings, plugins=plugins, autoload=False, skill_dirs=skills) as host:
        if "key" in order:
            result = await host.run(CallRequest(order["tool"], order.get("arguments", {}), key=order["key"]))
            answer = {"output": result.output, "answered": len(result.answered), "skipped": len(result.skipped)}
        else:
            answer = await converse(host, home, order, approver if "approve" in order else None)
    (home / "answer").write_text(json.dumps(answer))


async def converse(host, home, order, approver):
    sessions = [one.id for one in await Agent(host).sessions.list()]
    session = sessions[0] if sessions else None
    tools = order.get("tools")
    async with Agent(host, session=session, approver=approver, guards=guards(home, order), tools=tools) as agent:
        AGENTS[:] = [agent]
        for one in await host.approvals.list() if "answer" in order else ():
            if one.state == "open":
                await host.approvals.answer(one.request.id, Approval(**order["answer"]))
        if session and not order.get("new_input"):
            result = await agent.resume()
        else:
            result = await agent.invoke("go")
        results = [one for one in agent.session.messages() if isinstance(one, ToolResultMessage)]
        one = results[0] if results else None
        metadata = {name: one.metadata.get(name) for name in ("code", "unknown", "replay", "replayed")} if one else {}
        every = [(one.text, one.is_error, one.metadata.get("unknown", False)) for one in results]
        usage = agent.usage.model_dump(), agent.allowance.used.money, agent.allowance.used.calls
        kept = [key for key in await host.store.keys("session/") if "/children/" in key]
        return {
            "usage": usage,
            "kept": kept,
            "listed": len(await agent.sessions.list()),
            "text": one and one.text,
            "exit": result and result.exit_code,
            "requests": sorted([one.request.subject, one.state] for one in await host.approvals.list()),
            "run": result and [result.status, (result.error or {}).get("code")],
            "said": result and result.text,
            "routes": [one.status for one in agent.session.path() if isinstance(one, RouteEntry)],
            "notes": [one.text for one in agent.session.messages() if getattr(one, "source", "user") == "cashier"],
            "error": one and one.is_error,
            "results": every,
            **metadata,
        }


def serve():
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.close(0)
            try:
                anyio.run(main, order)
            except BaseException:  # noqa: BLE001  any error must be reported to the test
                (Path(order["home"]) / "failure").write_text(traceback.format_exc())
            os._exit(0)
        if order.get("announced"):
            print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(status, flush=True)


if __name__ == "__main__":
    serve()
