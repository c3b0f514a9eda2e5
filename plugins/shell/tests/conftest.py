"""Fixtures: a host with this plugin and the system sandbox, and functions that run programs."""

import os
import sys
import sysconfig
from functools import partial
from pathlib import Path

import pytest
import sideband_shell.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.broker import SessionEnds
from sideband.ops import Origin

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
def more_plugins():
    return []


@pytest.fixture
def open_host(home, settings, sandboxes, more_plugins):
    """Return a function that makes a host, to open it several times."""
    plugins = [
        Plugin("op", "shell", sideband_shell.plugin),
        Plugin("sandbox", "sandbox", sandboxes),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        *more_plugins,
    ]
    made = {"plugins": plugins, "settings": {"plugins": {"shell": settings}}, "autoload": False}
    return lambda: Host(home=home, **made)


@pytest.fixture
async def host(open_host, anyio_backend):
    async with open_host() as host:
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


EVERYTHING = ["shell:binary=*,code=yes|no,runs=any,place=*,mode=read|write|execute"]


class Session:
    """A session of an agent, as ops see it."""

    def __init__(self, host, name="s1", plugin="tools", hooks=None):
        self.host, self.name, self.plugin = host, name, plugin
        self.hooks = hooks or host.hooks.derive(lambda context: context)
        self.hooks.session_ends = self.hooks.session_ends or SessionEnds()

    async def __call__(self, op, **params):
        origin = Origin(session=self.name)
        context = self.host.context_for(self.plugin)
        return await context.dispatch_for(origin, f"shell.{op}", params, capabilities=EVERYTHING, hooks=self.hooks)

    async def start(self, script, **params):
        return (await self("start", binary="sh", args=["-c", script], **params))["program"]

    async def whole(self, program):
        return await self("output", program=program, wait=30, until="end")

    async def end(self):
        await self.hooks.session_ends.end(self.name)


@pytest.fixture
def new_session():
    """Return a function that makes a session of an agent, which calls ops."""
    return Session


@pytest.fixture
def session_of(host):
    return partial(Session, host)


@pytest.fixture
def session(session_of):
    return session_of()
