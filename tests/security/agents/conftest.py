"""Fixtures for attacks on agents. The agents are real; only the model is scripted."""

import importlib.util
from pathlib import Path

import pytest
import sideband_guard_loop.plugin
import sideband_retry.plugin
from sideband import Plugin

_spec = importlib.util.spec_from_file_location("agent_stage", Path(__file__).parents[2] / "agent" / "conftest.py")
_agents = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_agents)

kit = _agents.kit
stage = _agents.stage


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def loop_guard():
    """Return the guard against repeated tool calls."""
    return Plugin("guard", "guard-loop", sideband_guard_loop.plugin)


@pytest.fixture
def retry():
    """Return the plugin that retries failed model calls."""
    return Plugin("hook", "retry", sideband_retry.plugin)


@pytest.fixture
def results():
    """Return a function that returns the tool results in the session of an agent."""

    def found(agent):
        return [message for message in agent.session.messages() if message.role == "tool"]

    return found
