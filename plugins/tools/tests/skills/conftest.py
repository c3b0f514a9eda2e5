"""An agent whose scripted model runs, writes and deletes skills, in the isolation of the system."""

import shutil
import zipfile
from contextlib import asynccontextmanager

import pytest
import sideband_blobs.plugin
import sideband_files.plugin
import sideband_guard_approval.plugin
import sideband_llm.plugin
import sideband_shell.plugin
import sideband_skills.ops
import sideband_skills.plugin
import sideband_store_sqlite.plugin
import sideband_tools.plugin
from sideband import Host, Plugin
from sideband.approvals import Approval
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

MANIFEST = "---\nname: {name}\ndescription: Makes reports.\n{more}---\n\nRun scripts/run.py.\n"


@pytest.fixture
def skills(tmp_path):
    folder = tmp_path / "skills"
    folder.mkdir()
    return folder


@pytest.fixture
def make_skill(skills):
    """Write a skill with these files besides its SKILL.md."""

    def make(files, *, name="report", more="", text=""):
        folder = skills / name
        for path, content in {"SKILL.md": MANIFEST.format(name=name, more=more) + text, **files}.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        return folder

    return make


@pytest.fixture
def wheels(tmp_path):
    """A folder with a wheel of the package `tiny`, whose module has the constant `SIZE`."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    info = "tiny-1.0.dist-info"
    files = {
        "tiny.py": "SIZE = 7\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))
    return folder


@pytest.fixture
def approver():
    """An approver that allows everything for the session, and keeps the requests. `answer` changes the answer."""

    async def approve(request):
        approve.requests.append(request)
        return approve.answer

    approve.requests, approve.answer = [], Approval("allow", "session")
    return approve


@pytest.fixture
def settings(skills, wheels):
    plugins = {"skills": {"wheels": str(wheels)}, "tools": {"skills": str(skills)}}
    return {"agent": {"model": "scripted:test"}, "plugins": plugins}


@pytest.fixture
def opened(sandboxes, settings, work, approver, tmp_path):
    """Open a host, and an agent whose model makes these calls, each in a turn of its own."""

    @asynccontextmanager
    async def open_agent(*calls, guards=False, mode="assist", approves=True, script=None):
        script = script or Scripted([])
        script.turns += [*(Turn(tool_calls=[one]) for one in calls), "done"]
        plugins = [
            Plugin("op", "blobs", sideband_blobs.plugin),
            Plugin("op", "files", sideband_files.plugin),
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("op", "shell", sideband_shell.plugin),
            Plugin("op", "skills", sideband_skills.ops),
            Plugin("loader", "skills", sideband_skills.plugin),
            Plugin("provider", "scripted", script),
            Plugin("sandbox", "sandbox", sandboxes),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("tool", "skill", sideband_tools.plugin.skill),
            Plugin("tool", "tools", sideband_tools.plugin),
        ]
        if guards:
            plugins.append(Plugin("guard", "approval", sideband_guard_approval.plugin))
            settings["plugins"]["approval"] = {"mode": mode}
        dirs = [tmp_path / "skills"]
        host = Host(home=tmp_path / "home", settings=settings, plugins=plugins, autoload=False, skill_dirs=dirs)
        async with host, Agent(host, folder=work, approver=approver if approves else None) as agent:
            yield agent

    return open_agent


@pytest.fixture
def call(opened):
    """Let the model of an agent call one tool in a host of its own, and return the result."""

    async def run(name, /, **arguments):
        async with opened((name, arguments)) as agent:
            ran = await agent.invoke("go")
            assert ran.status == "completed", ran.error
            return next(one for one in ran.messages if one.role == "tool")

    return run


@pytest.fixture
def node():
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
