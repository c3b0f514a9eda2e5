"""A collector on this machine, and agents and hosts that send to it."""

import os
import threading
from contextlib import asynccontextmanager

import pytest
import sideband_http.plugin
import sideband_llm.plugin
import sideband_otel.plugin
import sideband_otel.trace
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Scripted

from .collector import Collector


class Text(BaseModel):
    text: str = ""


@tool("work")
async def work(params: Text, ctx) -> str:
    """Work."""
    await ctx.dispatch("llm.models", {})
    return f"worked on {params.text}"


@tool("delegate")
async def delegate(params: Text, ctx) -> str:
    """Delegate."""
    return (await ctx.spawn_child("count")).text


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    """Remove the variables of OpenTelemetry, which a machine may have."""
    for name in [*os.environ]:
        if name.startswith("OTEL_") or name == "TRACEPARENT":
            monkeypatch.delenv(name)


@pytest.fixture
def collector():
    with Collector() as running:
        yield running


@pytest.fixture
def sending(collector, monkeypatch):
    """Let hosts send to the collector, and return it."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    return collector


@pytest.fixture
def skills(tmp_path):
    """The folder of the skill `clock`, with the tool `now`."""
    folder = tmp_path / "skills" / "clock"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: clock\ndescription: Returns the time.\n---\n")
    (folder / "tools.py").write_text(
        "from sideband.skill import tool\n\n@tool\nasync def now() -> int:\n    return 1\n"
    )
    return folder.parent


@pytest.fixture
def open_host(tmp_path):
    """Return a function that opens a host with this plugin, and what its agents need."""

    def make(*plugins, turns=(), settings=None, **options):
        own = [
            Plugin("hook", "otel", sideband_otel.plugin),
            Plugin("op", "trace", sideband_otel.trace),
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("op", "http", sideband_http.plugin),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("provider", "scripted", Scripted(list(turns))),
            Plugin("loader", "skills", sideband_skills.plugin),
            Plugin("tool", "work", work),
            Plugin("tool", "delegate", delegate),
            *plugins,
        ]
        tables = {"agent": {"model": "scripted:test"}, "policy": {"isolation": "none"}, **(settings or {})}
        return Host(home=tmp_path / "home", settings=tables, plugins=own, autoload=False, **options)

    return make


@pytest.fixture
def open_agent(open_host):
    """Return a function that opens a host, and an agent with these turns of the model."""

    @asynccontextmanager
    async def make(turns, *plugins, agent=None, **options):
        async with open_host(*plugins, turns=turns, **options) as host, Agent(host, **(agent or {})) as opened:
            yield opened

    return make


@pytest.fixture
def threads():
    """Return a function that waits until no thread is left that a test has started."""
    before = set(threading.enumerate())

    def join(seconds):
        for thread in set(threading.enumerate()) - before:
            if "otel" in thread.name.lower():
                thread.join(seconds)
        return [one.name for one in set(threading.enumerate()) - before if "otel" in one.name.lower()]

    return join
