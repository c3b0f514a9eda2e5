"""The question about a call is withdrawn when this call is cancelled, and no other question is."""

import anyio
import pytest
import sideband_blobs.plugin
from pydantic import BaseModel
from sideband import Plugin
from sideband.approvals import Approval
from sideband.hooks import Ask, hookimpl
from sideband.tools import tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    pass


class Content(BaseModel):
    content: str


@tool("put")
async def put(params: Content, ctx) -> str:
    """Store a text."""
    return (await ctx.dispatch("blobs.put", {"content": params.content}))["sha256"]


def about_calls(self, event):
    return Ask("Really?")


def about_effects(self, event):
    return Ask("Really?") if event.op == "blobs.put" else None


@pytest.fixture(params=["tool_call", "op_call"])
def plugins(request):
    ask = {"tool_call": about_calls, "op_call": about_effects}[request.param]
    guard = type("Sentry", (), {request.param: hookimpl(ask)})
    return [
        Plugin("guard", "sentry", guard),
        Plugin("op", "blobs", sideband_blobs.plugin),
        Plugin("tool", "put", put),
    ]


def put_all(*texts):
    return [Turn(tool_calls=[("put", {"content": one}) for one in texts]), "ok"]


def results(agent):
    return [one for one in agent.session.messages() if one.role == "tool"]


def ids(agent):
    return [one.id for one in agent.session.messages()[-1].tool_calls]


async def test_question_about_a_cancelled_call_is_withdrawn(stage, plugins):
    ended = []

    async def approve(request):
        agent.cancel_call(ids(agent)[0], "not needed")
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(request.id)

    async with stage(put_all("a"), *plugins, approver=approve) as agent:
        with anyio.fail_after(10):
            ran = await agent.invoke("hi")
        (result,) = results(agent)
        assert await agent.host.approvals.list() == []
    assert (ran.status, len(ended), result.metadata["code"]) == ("completed", 1, "tool.cancelled")


async def test_question_about_another_call_stays(stage, plugins):
    open_ones = []

    async def approve(request):
        if "a" in str(request.effect["content"]):
            agent.cancel_call(ids(agent)[0])
            await anyio.sleep_forever()
        while any("a" in str(one.request.effect["content"]) for one in await agent.host.approvals.list()):
            await anyio.lowlevel.checkpoint()
        open_ones.extend(one.state for one in await agent.host.approvals.list())
        return Approval("allow")

    async with stage(put_all("a", "b"), *plugins, approver=approve) as agent:
        with anyio.fail_after(10):
            await agent.invoke("hi")
        first, second = results(agent)
    assert (first.metadata["code"], second.is_error, open_ones) == ("tool.cancelled", False, ["open"])


async def test_cancelled_call_is_not_asked_about(stage):
    asked = []

    def ask(self, event):
        agent.cancel_call(ids(agent)[0])
        return Ask("Really?")

    async def approve(request):
        asked.append(request.id)
        return Approval("allow")

    plugins = [Plugin("guard", "sentry", type("Sentry", (), {"tool_call": hookimpl(ask)})), Plugin("tool", "put", put)]
    async with stage(put_all("a"), *plugins, approver=approve) as agent:
        await agent.invoke("hi")
        (result,) = results(agent)
    assert (asked, result.text) == ([], "This call was cancelled. It was not run.")


@pytest.mark.parametrize(("whole_run", "options"), [(False, {}), (True, {}), (False, {"resume": "replay"})], ids=str)
async def test_question_of_a_child_is_withdrawn_with_the_call_that_started_it(stage, plugins, whole_run, options):
    ended = []

    @tool("delegate", **options)
    async def delegate(params: Nothing, ctx) -> str:
        """Let a child do it."""
        return (await ctx.spawn_child("store it")).text

    async def approve(request):
        if request.subject == "delegate":
            return Approval("allow")
        agent.abort() if whole_run else agent.cancel_call(ids(agent)[0])
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(request.origin.parent is not None)

    turns = [Turn(tool_calls=[("delegate", {})]), Turn(tool_calls=[("put", {"content": "a"})]), "ok"]
    async with stage(turns, *plugins, Plugin("tool", "delegate", delegate), approver=approve) as agent:
        with anyio.fail_after(10):
            ran = await agent.invoke("hi")
        assert [one for one in await agent.host.approvals.list() if one.state == "open"] == []
    assert (ran.status, ended) == ("aborted" if whole_run else "completed", [True])
