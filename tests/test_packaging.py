"""Each wheel can be installed and imported with only its declared dependencies."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UV = next((path for path in (ROOT / ".venv/uv/bin/uv", Path(sys.executable).with_name("uv")) if path.exists()), None)
KINDS = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
FOLDERS = [
    *(str(path.parent.relative_to(ROOT)) for kind in KINDS for path in sorted(ROOT.glob(f"{kind}/pyproject.toml"))),
    ".",
]


# Modules may require an extra, except for top-level packages and plugin modules.
IMPORTING = """
import importlib

for name in {modules}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in {extras} or name in {tops} or name.endswith(".plugin"):
            raise
"""


def uv(*words, **options):
    return subprocess.run([UV, *map(str, words)], check=True, capture_output=True, text=True, **options)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """All wheels of the workspace, by source folder."""
    assert UV, "uv is required to build wheels; run `make test` to install it"
    built = {}
    for folder in FOLDERS:
        out = tmp_path_factory.mktemp("wheel")
        uv("build", "--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable, "--no-sources",
           "--out-dir", out, ROOT / folder)  # fmt: skip
        (built[folder],) = out.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def index(wheels, tmp_path_factory):
    """A folder with all wheels of the workspace, for dependencies between them."""
    folder = tmp_path_factory.mktemp("index")
    for wheel in wheels.values():
        (folder / wheel.name).hardlink_to(wheel)
    return folder


def install(index, folder, *wheels):
    """Return the interpreter of an environment that holds these wheels, their dependencies, and nothing else."""
    python = folder / "bin" / "python"
    if not python.exists():
        uv("venv", "--quiet", "--python", sys.executable, folder)
    pins = ROOT / "requirements" / "run.txt"
    uv("pip", "install", "--quiet", "--exact", "--python", python, "--find-links", index, "--constraint", pins, *wheels)
    return python


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """The folder of an environment that the tests reuse, so that dependencies are compiled only once."""
    return tmp_path_factory.mktemp("environment") / "venv"


def run(python, code, home):
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SIDEBAND_HOME": str(home)}
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "."])
def test_wheel_can_be_installed_and_imported_alone(folder, wheels, index, environment, tmp_path):
    python = install(index, environment, wheels[folder])
    with zipfile.ZipFile(wheels[folder]) as archive:
        files = archive.namelist()
    tops = sorted({name.partition("/")[0] for name in files if name.endswith("/__init__.py") and name.count("/") == 1})
    assert tops
    assert all(f"{top}/py.typed" in files for top in tops)
    modules = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in files
        if name.endswith(".py") and name.partition("/")[0] in tops and not name.endswith("__main__.py")
    )
    run(python, IMPORTING.format(modules=modules, tops=tops, extras=_extras(ROOT / folder)), tmp_path)


def _extras(folder):
    """Return the modules that are installed only with an extra."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    lines = (line for lines in project.get("optional-dependencies", {}).values() for line in lines)
    return sorted({re.split(r"[\s\[<>=!~;]", line)[0].replace("-", "_") for line in lines})


def test_default_distribution_installs_a_working_command(wheels, index, tmp_path):
    python = install(index, tmp_path / "venv", wheels["."])
    home = tmp_path / "home"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SIDEBAND_HOME": str(home)}
    done = subprocess.run(
        [python.with_name("sideband"), "demo", "--json"], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert '"Neptune"' not in done.stdout
    assert '"Mercury"' in done.stdout


WITHOUT_AGENT = ("core", "plugins/cli", "plugins/crypto", "plugins/store-sqlite")


@pytest.fixture(scope="module")
def without_agent(wheels, index, tmp_path_factory):
    """The command line, installed with only the kernel, one op family and a store."""
    folder = tmp_path_factory.mktemp("without-agent")
    python = install(index, folder / "venv", *(wheels[name] for name in WITHOUT_AGENT))
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "SIDEBAND_HOME": str(folder / "home")}

    def sideband(*words):
        return subprocess.run(
            [python.with_name("sideband"), *words], capture_output=True, text=True, check=False, cwd=folder,
            stdin=subprocess.DEVNULL, env=environment,
        )  # fmt: skip

    installed = json.loads(uv("pip", "list", "--python", python, "--format", "json").stdout)
    names = {one["name"] for one in installed if one["name"].startswith("sideband")}
    assert names == {
        "sideband-core",
        "sideband-cli",
        "sideband-crypto",
        "sideband-skill-packages",
        "sideband-store-sqlite",
    }
    assert sideband("op", "crypto.hash", "data=abc").returncode == 0
    return sideband


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--help", "sessions  "),
        ("run --help", "--model"),
        ("ops list", "crypto.hash"),
        ("ops show crypto.hash", "requires: crypto"),
        ("plugins list", "sideband-crypto"),
        ("plugins check", "sideband-crypto"),
        ("plugins why crypto", "op.crypto: active"),
        ("hooks list", "op_call"),
        ("doctor --isolation none", "isolation"),
        ("audit tail", "crypto.hash"),
        ("audit query", "crypto.hash"),
        ("audit verify", "ledger"),
        ("skills list", "skills"),
        ("sdk stubs stubs", "sideband_sdk/crypto.py"),
    ],
)
def test_command_without_agent_features_works_without_the_agent(without_agent, words, expected):
    done = without_agent(*words.split())
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_audit_why_explains_an_effect_without_the_agent(without_agent):
    effect = json.loads(without_agent("audit", "query", "--op", "crypto.hash", "--json").stdout)[0]["effect"]
    done = without_agent("audit", "why", effect)
    assert done.returncode == 0, done.stderr
    assert effect in done.stdout
    assert "crypto.hash" in done.stdout
    unknown = without_agent("audit", "why", "call_1", "--json")
    assert (unknown.returncode, json.loads(unknown.stdout)["error"]["code"]) == (2, "usage")


@pytest.mark.parametrize("words", ["run hello", "chat", "sessions list", "sessions show last"])
def test_command_with_agent_features_suggests_installing_the_agent(without_agent, words):
    done = without_agent(*words.split())
    assert (done.returncode, done.stdout) == (5, "")
    assert "[agent.missing]" in done.stderr
    assert "pip install sideband-agent" in done.stderr
    error = json.loads(without_agent(*words.split(), "--json").stdout)["error"]
    assert error["code"] == "agent.missing"
    assert "pip install sideband-agent" in error["hint"]
