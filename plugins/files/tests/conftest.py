"""A host with this plugin and its own home directory, and a folder outside of it."""

import hashlib
from types import SimpleNamespace

import pytest
import sideband_files.plugin
from sideband import Plugin


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def home_directory(tmp_path, monkeypatch):
    """A home directory, which also contains the locks of the user's hosts with different homes."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return tmp_path / "user"


@pytest.fixture
def settings():
    return {}


@pytest.fixture
def more_plugins():
    return []


@pytest.fixture
def open_host(sideband_host, settings, more_plugins):
    """Return a function that opens a host, by default with the home of the test."""

    def open_it(home=sideband_host.home, settings=settings):
        plugins = [*more_plugins, Plugin("op", "files", sideband_files.plugin)]
        return sideband_host(*plugins, home=home, settings={"plugins": {"files": settings}})

    return open_it


@pytest.fixture
async def host(open_host, anyio_backend):
    async with open_host() as host:
        yield host


@pytest.fixture
def home(host):
    """The host's folder for files."""
    folder = host.home / "files"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def place(tmp_path):
    """A folder outside of the host's home."""
    folder = (tmp_path / "place").resolve()
    folder.mkdir()
    return folder


@pytest.fixture
def files(host):
    """The ops by name, called as the user; `grants` and `key` as for `host.op`."""

    def op(name):
        async def run(path=None, *, grants=None, key=None, on_effect=None, **params):
            given = params if path is None else {"path": str(path), **params}
            return await host.op(f"files.{name}", given, grants=grants, key=key, on_effect=on_effect)

        return run

    reading = ("read", "lines", "search", "list", "find", "stat")
    names = (*reading, "write", "copy", "move", "delete", "make_folder", "restore")
    return SimpleNamespace(**{name: op(name) for name in names})


@pytest.fixture
def effects():
    """Collects the ids of effects."""

    class Effects(list):
        def __call__(self, report):
            self.append(report.id)

    return Effects()


@pytest.fixture
def digest():
    def of(data):
        return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()

    return of


@pytest.fixture
def victim(tmp_path):
    """A folder of the user that no effect has changed."""
    folder = (tmp_path / "victim").resolve()
    folder.mkdir()
    return folder


@pytest.fixture
def undo(host, effects):
    """Return a function that undoes an effect, by default the last one, and returns its plan and its errors."""

    async def run(effect=None, *, plan=None):
        plan = plan or await host.plan_undo(effect or effects[-1])
        return plan, [step.error for step in await host.undo(plan, on_effect=effects) if step.error]

    run.effects = effects
    return run


@pytest.fixture
def scene(files, host, place, victim, undo):
    """What a test of undo needs, together."""
    return SimpleNamespace(files=files, host=host, place=place, victim=victim, effects=undo.effects, undo=undo)
