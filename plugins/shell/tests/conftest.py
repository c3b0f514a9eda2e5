"""A host with this plugin and the machine's own sandbox, and commands of all kinds."""

import os
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
import sideband_shell.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband_sandbox import SystemSandbox
from sideband_sandbox._programs._launcher import ProgramLauncher

PYTHON = os.path.realpath(sys.executable)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def settings():
    return {}


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture(scope="session")
def proved():
    """What the sandbox has proved here: once, since it is the same for all tests."""

    async def prove():
        sandbox = SystemSandbox()
        try:
            await sandbox.prove_programs()
            return sandbox._finding, sandbox._programs
        finally:
            await sandbox.close()

    return anyio.run(prove)


@pytest.fixture
def sandboxes(proved):
    """A sandbox plugin whose proof has been made already."""
    finding, commands = proved
    sandbox = SystemSandbox()
    sandbox._finding, sandbox._programs = finding, ProgramLauncher(commands._ground, commands._isolation)
    sandbox._programs._variant = commands._variant
    return SimpleNamespace(sideband_sandboxes=lambda: [sandbox])


@pytest.fixture
async def host(home, settings, sandboxes, anyio_backend):
    plugins = [
        Plugin("op", "shell", sideband_shell.plugin),
        Plugin("sandbox", "sandbox", sandboxes),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    async with Host(home=home, settings={"plugins": {"shell": settings}}, plugins=plugins, autoload=False) as host:
        yield host


@pytest.fixture
def run(host):
    """``run(binary, *args, grants=…, **params)``; without grants, all that the request needs."""

    async def run(binary, *args, grants=None, **params):
        allowed = ["shell:binary=*,code=yes|no,network=yes|no,place=*,mode=read|write,env=*"]
        request = {"binary": binary, "args": list(args), **params}
        return await host.op("shell.run", request, grants=allowed if grants is None else grants)

    return run


@pytest.fixture
def python_places():
    """What this interpreter needs beside the system's programs."""
    places = {Path(sysconfig.get_path("stdlib")).resolve(), Path(sys.base_prefix, "lib").resolve()}
    return [str(place) for place in places if not place.is_relative_to("/usr")]


@pytest.fixture
def run_python(run, python_places):
    """Runs a piece of Python."""

    async def run_python(code, *args, read=(), **params):
        return await run(PYTHON, "-I", "-S", "-c", code, *args, read=[*python_places, *read], **params)

    return run_python


@pytest.fixture
def place(tmp_path):
    folder = (tmp_path / "place").resolve()
    folder.mkdir()
    (folder / "known").write_text("known\n")
    return folder
