"""What authors write against the public API is accepted by a host; ``make types`` checks that it is typed."""

import importlib.util
from pathlib import Path

import pytest
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

AUTHORS = Path(__file__).parent / "authors"


def load(name):
    spec = importlib.util.spec_from_file_location(name, AUTHORS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.anyio
async def test_a_strict_host_accepts_every_plugin_of_the_authors(tmp_path):
    agents, author = load("agents"), load("author")
    scripted = Scripted([Turn(tool_calls=[("notes__sum", {"texts": []})]), "as you like"])
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
    asked = []

    async def approve(question, event):
        asked.append(question)
        return False

    settings = {"policy": {"strict": True}}
    async with Host(home=tmp_path, plugins=plugins, autoload=False, settings=settings) as host:
        assert len((await host.plugins.load("provider", "parrot")).contribution) == 1
        assert len((await host.plugins.load("op", "weather")).contribution.ops) == 1
        async with Agent(host, model="scripted:test", approver=approve) as agent:
            result = await agent.invoke("sum up")
            assert agent.tools.names == ("notes.sum",)
            assert asked == [f"run notes.sum in {agent.session.id}?"]
        assert scripted.requests[0].system == "You are a parrot with 1 tools."
    assert result.text == "as you like"
    assert next(one for one in result.messages if one.role == "tool").metadata["plugin"] == "careful"
