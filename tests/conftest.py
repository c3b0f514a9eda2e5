"""Shared fixtures: skill folders, the command line, and the packages of the workspace."""

import ast
import gc
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMAND = Path(sys.executable).with_name("sideband")
UV = next((path for path in (ROOT / ".venv/uv/bin/uv", Path(sys.executable).with_name("uv")) if path.exists()), None)

# One process builds all wheels, since starting the build backend takes longer than building a wheel.
BUILDING = """
import os, sys
from hatchling.build import build_wheel

for folder, out in zip(sys.argv[1::2], sys.argv[2::2]):
    os.chdir(folder)
    build_wheel(out)
"""


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


def uv(*words, **options):
    return subprocess.run([UV, *map(str, words)], check=True, capture_output=True, text=True, **options)


@pytest.fixture(scope="session")
def build_wheels(tmp_path_factory):
    """Build the wheels of source folders in one process, and return them by folder."""

    def build(folders):
        outs = {folder: tmp_path_factory.mktemp("wheel") for folder in folders}
        words = [str(path) for folder, out in outs.items() for path in (ROOT / folder, out)]
        subprocess.run([sys.executable, "-c", BUILDING, *words], check=True, capture_output=True)
        return {folder: next(out.glob("*.whl")) for folder, out in outs.items()}

    return build


@pytest.fixture(scope="session")
def wheels(build_wheels):
    """All wheels of the workspace, by source folder."""
    return build_wheels(_folders())


@pytest.fixture(scope="session")
def index(wheels, tmp_path_factory):
    """A folder with all wheels of the workspace, for dependencies between them."""
    folder = tmp_path_factory.mktemp("index")
    for wheel in wheels.values():
        (folder / wheel.name).hardlink_to(wheel)
    return folder


class Environment:
    """A virtual environment whose contents can be replaced: common packages stay installed and compiled."""

    def __init__(self, index, folder):
        assert UV, "uv is required to install wheels; run `make test` to install it"
        uv("venv", "--quiet", "--python", sys.executable, folder / "venv")
        self.index, self.folder = index, folder
        self.python = folder / "venv" / "bin" / "python"

    def install(self, *wheels):
        """Install wheels and their dependencies, and remove all other packages."""
        pins = ROOT / "requirements" / "run.txt"
        uv("pip", "install", "--quiet", "--exact", "--python", self.python, "--find-links", self.index,
           "--constraint", pins, *wheels)  # fmt: skip

    def installed(self):
        """Return the version of each installed package by name."""
        listed = json.loads(uv("pip", "list", "--python", self.python, "--format", "json").stdout)
        return {one["name"]: one["version"] for one in listed}

    def run(self, *words, **environment):
        """Run a program of the environment."""
        program = self.python.with_name(words[0])
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "SIDEBAND_HOME": str(self.folder / "home")}
        return subprocess.run(
            [program, *words[1:]], capture_output=True, text=True, check=False, cwd=self.folder,
            stdin=subprocess.DEVNULL,
            env={**variables, "PYTHONPYCACHEPREFIX": str(self.folder / "compiled"), **environment},
        )  # fmt: skip


@pytest.fixture(scope="session")
def make_environment(index, tmp_path_factory):
    """Create an environment without packages, with a part of its name."""
    return lambda name: Environment(index, tmp_path_factory.mktemp(name))


@pytest.fixture(scope="module")
def environment(make_environment):
    """An environment for all tests of a module, which installs wheels and what they need from the index."""
    return make_environment("environment")


def _folders():
    """Return the folder of each package, relative to the repository."""
    kinds = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
    manifests = (path for kind in kinds for path in sorted(ROOT.glob(f"{kind}/pyproject.toml")))
    return [*(str(path.parent.relative_to(ROOT)) for path in manifests), "."]
