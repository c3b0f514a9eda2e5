"""A host with this plugin and the machine's own sandbox, and commands of all kinds."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest
import sideband_sandbox.plugin
import sideband_shell.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin

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


@pytest.fixture
async def host(home, settings, anyio_backend):
    plugins = [
        Plugin("op", "shell", sideband_shell.plugin),
        Plugin("sandbox", "sandbox", sideband_sandbox.plugin),
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
