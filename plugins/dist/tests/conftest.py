"""A lock, and the command line in this process."""

import json

import pytest
from sideband.__main__ import main
from sideband_dist import DistLock

A, B, C = ("0123456789abcdef" * 4, "1" * 64, "2" * 64)


def lock_data(**changes):
    return {
        "manifest": A,
        "dist": {"name": "acme", "python": ">=3.11"},
        "settings": {"policy": {"isolation": "full", "deny": {"op.shell": "no"}}},
        "plugins": [
            {"kind": "guard", "name": "watch", "value": "watch", "api": 1, "package": "acme-watch", "order": 1},
            {
                "kind": "op", "name": "geo", "value": "geo.plugin", "api": 1, "package": "acme-geo",
                "ops": {"geo.find": "MONITORED geo"}, "uses": ["http:host=geo.example"],
            },
        ],
        "packages": [
            {
                "name": "acme-geo", "version": "1.0", "requires": ["acme-watch"],
                "wheels": f"{A}  acme_geo-1.0-py3-none-any.whl\n", "files": f"{B}  geo/plugin.py\n",
            },
            {
                "name": "acme-watch", "version": "2.0", "marker": "sys_platform != 'win32'",
                "wheels": f"{B}  acme_watch-2.0-py3-none-any.whl\n{C}  acme_watch-2.0-cp311-cp311-linux_x86_64.whl\n",
            },
        ],
        **changes,
    }  # fmt: skip


@pytest.fixture
def data():
    """The content of a lock, to change it."""
    return lock_data()


@pytest.fixture
def lock(data):
    return DistLock.model_validate(data)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory."""
    monkeypatch.setenv("SIDEBAND_HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def dist(folder, capsys):
    """Run `sideband dist … --json`, and return the exit code and the data."""

    def run(*words):
        code = main(["dist", *map(str, words), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run
