"""A host accepts plugins written against the public API. ``make types`` checks their types."""

import importlib.util
from pathlib import Path

import pytest
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.approvals import Approval
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

AUTHORS = Path(__file__).parent / "authors"


def load(name):
    spec = importlib.util.spec_from_file_location(name, AUTHORS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.anyio
async def test_strict_host_accepts_all_example_plugins(tmp_path):
    agents, author = load("agents"), load("author")
    scripted = Scripted([Turn(tool_calls=[("notes__sum", {"texts": []})]), "done"])
    plugins = [
        Plugin("op", "llm", sideband_llm.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("provider", "scripted", scripted),
        Plugin("provider", "parrot", agents),
        Plugin("tool", "notes", agents),
        Plugin("guard", "careful", agents),
        Plugin("hook", "author", agents),
        Plugin("op", "weather", author),
    ]
    questions = []

    async def approve(request):
        questions.append(request.question)
        return Approval("deny")

    settings = {"policy": {"strict": True}}
    async with Host(home=tmp_path, plugins=plugins, autoload=False, settings=settings) as host:
        assert len((await host.plugins.load("provider", "parrot")).contribution) == 1
        assert len((await host.plugins.load("op", "weather")).contribution.ops) == 1
        async with Agent(host, model="scripted:test", approver=approve) as agent:
            result = await agent.invoke("sum up")
            assert agent.tools.names == ("notes.sum",)
            assert questions == [f"run notes.sum in {agent.session.id}?"]
        assert scripted.requests[0].system == "You are a parrot with 1 tools."
    assert result.text == "done"
    assert next(one for one in result.messages if one.role == "tool").metadata["plugin"] == "careful"
