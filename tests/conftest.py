"""Shared fixtures: skill folders, the command line, and the packages of the workspace."""

import ast
import gc
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMAND = Path(sys.executable).with_name("sideband")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def packages():
    """The parsed pyproject.toml of each package of the workspace, by folder."""
    kinds = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
    manifests = [path for kind in kinds for path in sorted(ROOT.glob(f"{kind}/pyproject.toml"))]
    return {path.parent: tomllib.loads(path.read_text()) for path in manifests}


@pytest.fixture(scope="session")
def trees():
    """The syntax tree of each module of the packages, by path relative to the repository."""
    kinds = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
    paths = [path for kind in kinds for path in sorted(ROOT.glob(f"{kind}/src/**/*.py"))]
    gc.disable()  # collections during parsing take three times as long as parsing
    try:
        return {path.relative_to(ROOT): ast.parse(path.read_text()) for path in paths}
    finally:
        gc.enable()


@pytest.fixture
def make_skill(tmp_path):
    """Create a skill folder from code and requested capabilities."""

    def make(name, code, capabilities="", **metadata):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        lines = "".join(f"  sideband.{key}: '{value}'\n" for key, value in metadata.items())
        (folder / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: A test skill.\nmetadata:\n"
            f"  sideband.capabilities: '{capabilities}'\n{lines}---\n"
        )
        (folder / "tools.py").write_text(code)
        return folder

    return make


@pytest.fixture
def sideband(tmp_path):
    """Run the command line as a process with its own home folder and without a terminal."""

    def run(*words, stdin="", folder=tmp_path, **environment):
        return subprocess.run(
            [COMMAND, *map(str, words)],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "SIDEBAND_HOME": str(tmp_path / "home"),
                **environment,
            },
        )

    return run
