"""Fixtures: a host with this plugin and the system sandbox, and functions that run programs."""

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
    """Return the verified state of a sandbox, shared by all tests because verification is slow."""

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
    """Return a sandbox plugin that is already verified."""
    finding, launcher = proved
    sandbox = SystemSandbox()
    sandbox._finding, sandbox._programs = finding, ProgramLauncher(launcher._platform, launcher._isolation)
    sandbox._programs._variant = launcher._variant
    return SimpleNamespace(sideband_sandboxes=lambda: [sandbox])


@pytest.fixture
def more_plugins():
    return []


@pytest.fixture
async def host(home, settings, sandboxes, more_plugins, anyio_backend):
    plugins = [
        Plugin("op", "shell", sideband_shell.plugin),
        Plugin("sandbox", "sandbox", sandboxes),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        *more_plugins,
    ]
    async with Host(home=home, settings={"plugins": {"shell": settings}}, plugins=plugins, autoload=False) as host:
        yield host


@pytest.fixture
def run(host):
    """Return ``run(binary, *args, grants=…, **params)``; the default grants cover every request."""

    async def run(binary, *args, grants=None, **params):
        allowed = ["shell:binary=*,code=yes|no,runs=any,network=yes|no,place=*,mode=read|write,env=*"]
        request = {"binary": binary, "args": list(args), **params}
        return await host.op("shell.run", request, grants=allowed if grants is None else grants)

    return run


@pytest.fixture
def python_places():
    """Return the places that this interpreter needs outside of ``/usr``."""
    places = {Path(sysconfig.get_path("stdlib")).resolve(), Path(sys.base_prefix, "lib").resolve()}
    return [str(place) for place in places if not place.is_relative_to("/usr")]


@pytest.fixture
def run_python(run, python_places):
    """Return a function that runs Python code."""

    async def run_python(code, *args, read=(), **params):
        return await run(PYTHON, "-I", "-S", "-c", code, *args, read=[*python_places, *read], **params)

    return run_python


@pytest.fixture
def place(tmp_path):
    folder = (tmp_path / "place").resolve()
    folder.mkdir()
    (folder / "known").write_text("known\n")
    return folder
