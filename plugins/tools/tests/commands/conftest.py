"""An agent whose scripted model runs commands in a folder, in the isolation of the machine."""

import pytest
import sideband_files.plugin
import sideband_llm.plugin
import sideband_shell.plugin
import sideband_tools.plugin
from sideband import Plugin
from sideband.approvals import Approval
from sideband_agent import Agent
from sideband_scripted import Scripted


@pytest.fixture
def work(work):
    (work / "a.txt").write_text("inside\n")
    return work


@pytest.fixture
def requests():
    """The questions to the user so far, all of which are answered with yes."""
    return []


@pytest.fixture
def configured():
    """The table `[plugins.tools]`."""
    return {}


@pytest.fixture
def script():
    return Scripted([])


@pytest.fixture
def has_shell():
    return True


@pytest.fixture
def plugins(sandboxes, script, has_shell):
    return [
        Plugin("op", "files", sideband_files.plugin),
        *([Plugin("op", "shell", sideband_shell.plugin)] if has_shell else []),
        Plugin("op", "llm", sideband_llm.plugin),
        Plugin("sandbox", "sandbox", sandboxes),
        Plugin("provider", "scripted", script),
        Plugin("tool", "tools", sideband_tools.plugin),
    ]


@pytest.fixture
async def agent(sideband_host, plugins, work, requests, configured):
    async def approve(request):
        requests.append(request)
        return Approval("allow", "session")

    settings = {"agent": {"model": "scripted:test"}, "plugins": {"tools": configured}}
    async with (
        sideband_host(*plugins, settings=settings, approver=approve) as host,
        Agent(host, folder=work) as agent,
    ):
        yield agent


@pytest.fixture
def call(agent, script, calling):
    return calling(agent, script)
