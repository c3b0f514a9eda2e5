"""The plugin in a real agent: a conversation longer than its model's window."""

from types import SimpleNamespace

import pytest
import sideband_compaction.plugin
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.messages import AssistantMessage, ToolCallPart, ToolResultMessage
from sideband.providers import Finished, ModelInfo, ProviderRefused
from sideband.tools import tool
from sideband_agent import Agent

pytestmark = pytest.mark.anyio

WINDOW = 3_000
ROUNDS = 60


class LookParams(BaseModel):
    number: int


@tool("look", read_only=True)
async def look(params: LookParams, ctx) -> str:
    """Look at something."""
    return f"seen {params.number}: " + "x" * 400


class Worker:
    """A provider whose model calls `look` in each round, writes summaries, and rejects requests over its window."""

    name = "fake"

    def __init__(self, window, rounds=ROUNDS):
        self.window = window
        self.rounds = rounds
        self.looks = 0
        self.working = []
        self.summarizing = []
        self.refused = 0

    async def models(self, ctx):
        return [ModelInfo(id="m", context_window=self.window)]

    async def stream(self, request, ctx):
        if request.system.startswith("You keep the memory"):
            self.summarizing.append(request)
            yield Finished(message=AssistantMessage(content=f"SUMMARY {len(self.summarizing)}"))
            return
        size = sum(len(one.text) for one in request.messages) // 4
        if size > WINDOW:
            self.refused += 1
            raise ProviderRefused("fake", "too long", status=400, body="maximum context length exceeded")
        self.working.append(request)
        if self.looks == self.rounds:
            yield Finished(message=AssistantMessage(content="done"))
            return
        self.looks += 1
        call = ToolCallPart(id=f"c{self.looks}", name="look", arguments={"number": self.looks})
        yield Finished(message=AssistantMessage(content=(call,), stop="tool_calls"))


@pytest.fixture
def work(tmp_path):
    async def run(worker, text="Look at all of them.", **compaction):
        plugins = [
            Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
            Plugin(kind="op", name="llm", value=sideband_llm.plugin),
            Plugin(kind="hook", name="compaction", value=sideband_compaction.plugin),
            Plugin(kind="provider", name="fake", value=SimpleNamespace(sideband_providers=lambda: [worker])),
            Plugin(kind="tool", name="look", value=look),
        ]
        settings = {"agent": {"compaction": {"reserve": 500, "keep": 600}}, "plugins": {"compaction": compaction}}
        async with (
            Host(home=tmp_path / "home", settings=settings, plugins=plugins, autoload=False) as host,
            Agent(host, model="fake:m") as agent,
        ):
            return await agent.invoke(text)

    return run


def pairs_are_whole(messages):
    calls = [call.id for one in messages if isinstance(one, AssistantMessage) for call in one.tool_calls]
    return calls == [one.call for one in messages if isinstance(one, ToolResultMessage)]


@pytest.mark.parametrize("strategy", ["summary", "window"])
async def test_run_longer_than_the_window_completes(work, strategy):
    worker = Worker(WINDOW)
    result = await work(worker, strategy=strategy)
    assert (result.status, result.text, worker.looks, worker.refused) == ("completed", "done", ROUNDS, 0)
    assert all(pairs_are_whole(one.messages) for one in worker.working)
    assert all("Look at all of them." in [getattr(m, "text", "") for m in one.messages] for one in worker.working)
    assert bool(worker.summarizing) == (strategy == "summary")


async def test_agents_model_writes_and_updates_summaries_by_default(work):
    worker = Worker(WINDOW)
    await work(worker)
    assert {one.model for one in worker.summarizing} == {"m"}
    assert len(worker.summarizing) > 1
    assert "| SUMMARY 1" in worker.summarizing[1].messages[0].text
    assert f"SUMMARY {len(worker.summarizing)}" in worker.working[-1].messages[0].text
