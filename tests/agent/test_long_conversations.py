"""The work of a turn in a long conversation. What was sent before is neither prepared, checked nor built again."""

import sys
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace

import pytest
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin, hookimpl
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage, UserMessage
from sideband.providers import Finished, ModelInfo
from sideband_agent import Agent
from sideband_agent.sessions import MessageEntry

pytestmark = pytest.mark.anyio


class Quiet:
    """A model that answers at once."""

    name = "quiet"

    async def models(self, ctx):
        return (ModelInfo(id="one", context_window=10**8),)

    async def stream(self, request, ctx):
        yield Finished(message=AssistantMessage(content="done"))


def exchange(number):
    call = ToolCallPart(id=f"c{number}", name="look", arguments={"n": number})
    return (
        UserMessage(content=f"question {number}"),
        AssistantMessage(content=(call,), stop="tool_calls"),
        ToolResultMessage(call=call.id, tool="look", content="seen", metadata={"effect": "e"}),
        AssistantMessage(content=f"answer {number}"),
    )


async def calls_of_a_run(host, size):
    """Return the number of Python calls of a run with one turn, after ``size`` messages."""
    calls = 0

    def profile(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    async with Agent(host) as agent:
        await agent.session.append(
            *(MessageEntry(message=one) for number in range(size // 4) for one in exchange(number))
        )
        await agent.invoke("hello")
        sys.setprofile(profile)
        try:
            result = await agent.invoke("go on")
        finally:
            sys.setprofile(None)
        assert result.text == "done", result
    return calls


class Watchful:
    """A guard that reads what is sent."""

    @hookimpl
    def op_call(self, event):
        assert event.params["messages"][0]["content"][0]["text"] == "question 0"


@pytest.fixture
async def make_host(tmp_path):
    async with AsyncExitStack() as stack:
        yield lambda *plugins: stack.enter_async_context(opened(tmp_path, *plugins))


@asynccontextmanager
async def opened(home, *plugins):
    plugins = [
        *plugins,
        Plugin("op", "llm", sideband_llm.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("provider", "quiet", SimpleNamespace(sideband_providers=lambda: (Quiet(),))),
    ]
    settings = {"agent": {"model": "quiet:one", "context_window": 10**8}}
    async with Host(home=home, settings=settings, plugins=plugins, autoload=False) as host:
        host.redactor.protect("s3cr3t-canary-7f3a", "token")
        yield host


@pytest.mark.parametrize(
    ("guards", "most"), [([], 1.2), ([Plugin("guard", "watchful", Watchful)], 2.3)], ids=["alone", "guarded"]
)
async def test_a_turn_costs_hardly_more_calls_in_a_longer_conversation(make_host, guards, most):
    host = await make_host(*guards)
    few, many = [await calls_of_a_run(host, size) for size in (100, 1_000)]
    assert (many - few) / 900 <= most, "find out which step of a turn walks through all messages, and let it keep them"
