"""A host with this plugin and its own home directory, and a folder outside of it."""

import hashlib
from types import SimpleNamespace

import pytest
import sideband_files.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin


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
def open_host(tmp_path, settings, more_plugins):
    """Return a function that opens a host, by default with the home of the test."""

    def open_it(home=tmp_path / "home"):
        plugins = [
            *more_plugins,
            Plugin("op", "files", sideband_files.plugin),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        ]
        return Host(home=home, settings={"plugins": {"files": settings}}, plugins=plugins, autoload=False)

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

    names = ("read", "write", "list", "find", "stat", "copy", "move", "delete", "make_folder", "restore")
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
