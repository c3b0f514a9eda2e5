"""An agent with many tools, whose scripted model plays turns."""

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import sideband_llm.plugin
import sideband_tool_selection.plugin
from sideband import Plugin
from sideband.tools import Tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

WORDS = """
apple bridge candle desert engine forest garden hammer island jacket kettle ladder magnet needle orange pencil quartz
ribbon saddle turtle umbrella violin window yacht zebra
"""
SUBJECTS = WORDS.split()


def make(name, description=None, **options):
    async def run(arguments, ctx):
        return f"{name} done"

    text = f"Do something with the {name}." if description is None else description
    return Tool(name, text, {"type": "object", "properties": {}}, dict, run, **options)


SELECTION = [
    Plugin("hook", "tool-selection", sideband_tool_selection.plugin),
    Plugin("tool", "tool-selection", sideband_tool_selection.plugin),
]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def kit():
    return SimpleNamespace(make=make, call=call, sent=sent, results=results, subjects=SUBJECTS, asked=asked)


def call(*names, **arguments):
    return Turn(tool_calls=[(name, arguments) for name in names])


def sent(agent, number=-1):
    return [one.name for one in agent.scripted.requests[number].tools]


def results(agent):
    return [one for one in agent.session.messages() if one.role == "tool"]


def asked(agent, number=-1):
    """Return the result of a call of ``tool_expand_tools`` as data."""
    return json.loads(results(agent)[number].text)


@pytest.fixture
def stage(sideband_host):
    @asynccontextmanager
    async def open_stage(turns, *tools, settings=None, plugins=SELECTION, **options):
        script = Scripted(turns)
        found = [*tools] or [make(one) for one in SUBJECTS]
        host = sideband_host(
            *plugins,
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("provider", "scripted", script),
            Plugin("tool", "things", SimpleNamespace(sideband_tools=lambda: found)),
            settings={"agent": {"model": "scripted:test"}, **(settings or {})},
        )
        async with host as opened, Agent(opened, **options) as agent:
            agent.scripted = script
            yield agent

    return open_stage
