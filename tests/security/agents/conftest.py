"""What hostile models, servers, tools and files meet: real agents; only what the model says is made up."""

import importlib.util
from pathlib import Path

import pytest
import sideband_guard_loop.plugin
import sideband_retry.plugin
from sideband import Plugin

_spec = importlib.util.spec_from_file_location("agent_stage", Path(__file__).parents[2] / "agent" / "conftest.py")
_agents = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_agents)

anyio_backend = _agents.anyio_backend
kit = _agents.kit
stage = _agents.stage


@pytest.fixture
def loop_guard():
    """The guard against models that do the same again and again."""
    return Plugin("guard", "guard-loop", sideband_guard_loop.plugin)


@pytest.fixture
def retry():
    """What makes failed model calls again."""
    return Plugin("hook", "retry", sideband_retry.plugin)


@pytest.fixture
def results():
    """The results of tools that the session of an agent holds."""

    def found(agent):
        return [message for message in agent.session.messages() if message.role == "tool"]

    return found
