"""An agent with a scripted model and a real host, store, ledger and broker."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.hooks import HOOK_SPECS, Kind, hookimpl
from sideband.messages import AssistantMessage, ToolResultMessage
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Scripted


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Text(BaseModel):
    text: str = ""


@tool("echo", read_only=True)
async def echo(params: Text, ctx) -> str:
    """Return the text."""
    return params.text


def hooks(**functions):
    """Build a hook plugin from functions named after hooks."""
    return SimpleNamespace(**{name: hookimpl(function) for name, function in functions.items()})


def guard(**functions):
    """Build a guard from functions named after hooks."""
    return type("Guard", (), {name: staticmethod(hookimpl(function)) for name, function in functions.items()})


def listening(events):
    """Build a hook plugin that collects the events of all observe hooks."""

    def make(name):
        def listen(event):
            events.append(event)

        listen.__name__ = name
        return hookimpl(listen)

    return SimpleNamespace(**{name: make(name) for name, spec in HOOK_SPECS.items() if spec.kind is Kind.OBSERVE})


@pytest.fixture
def stage(tmp_path):
    """Open a host whose model plays ``turns``, and an agent on it."""

    @asynccontextmanager
    async def open_stage(turns, *plugins, settings=None, home=None, scripted=None, skill_dirs=(), **options):
        provider = scripted or Scripted(turns)
        own = [
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("provider", "scripted", provider),
            *plugins,
        ]
        settings = {"agent": {"model": "scripted:test"}, **(settings or {})}
        host = Host(
            home=home or tmp_path / "home", settings=settings, plugins=own, autoload=False, skill_dirs=skill_dirs
        )
        async with host, Agent(host, **options) as agent:
            agent.scripted = provider
            yield agent

    return open_stage


def assert_valid(messages):
    """Check that each tool call is followed by exactly one result, in order, as providers require."""
    waiting = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert waiting, f"a result without a call: {message.call}"
            assert message.call == waiting.pop(0)
            continue
        assert not waiting, f"calls without results: {waiting}"
        if isinstance(message, AssistantMessage):
            waiting = [call.id for call in message.tool_calls]
            assert len(set(waiting)) == len(waiting)
            assert message.content
    assert not waiting, f"calls without results: {waiting}"


@pytest.fixture
def kit():
    """Helpers shared by the tests of agents."""
    return SimpleNamespace(
        Text=Text,
        assert_valid=assert_valid,
        echo=Plugin("tool", "echo", echo),
        guard=guard,
        hooks=hooks,
        listening=listening,
    )
