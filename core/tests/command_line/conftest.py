"""Installed commands."""

import itertools
from textwrap import dedent

import pytest

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("SIDEBAND_HOME", str(folder))
    return folder


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Return a function that writes a distribution with one command."""

    def make(name, source, distribution="", requires=""):
        number = next(_numbers)
        module = f"sideband_test_command_{number}"
        site = tmp_path / f"site-{number}"
        info = site / f"{distribution or name}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / f"{module}.py").write_text(dedent(source).replace("{name}", name))
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution or name}\nVersion: 1.0\n" + requires
        )
        (info / "entry_points.txt").write_text(f"[sideband.v1.command]\n{name} = {module}\n")
        monkeypatch.syspath_prepend(str(site))

    return make
