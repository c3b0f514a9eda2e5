"""A package of each kind that is made from a template, and not changed, is tested, typed and ready to publish."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from sideband.settings import Settings
from sideband_templates import Template, bake

ROOT = Path(__file__).parents[1]
KINDS = next(one for one in Template.read("plugin").questions if one.name == "kind").choices
RUFF = Path(sys.executable).with_name("ruff")
# Prints the exit code, output and errors of each command of one process.
RUNNING = """
import contextlib, io, json, sys
from sideband.__main__ import main

for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(words)
    print(json.dumps([int(code), out.getvalue(), err.getvalue()]))
"""


def bake_all(folder, name="my"):
    """Make a package of each kind, and return their folders."""
    made = [bake("plugin", {"name": f"{name}-{kind}", "kind": kind}, folder) for kind in KINDS]
    return [*made, bake("skill", {"name": f"{name}-releases"}, folder)]


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """The folder with all projects."""
    folder = tmp_path_factory.mktemp("projects")
    bake_all(folder)
    return folder


@pytest.fixture(scope="module")
def installed(projects, build_wheels, wheels, make_environment):
    """An environment with the wheels of all projects and the default distribution."""
    made = build_wheels(sorted(projects.iterdir()))
    environment = make_environment("made")
    pins = ROOT / "requirements" / "test.txt"
    environment.install("--constraint", pins, wheels["."], *made.values(), "mypy", "pytest", "trio")
    home = environment.folder / "home"
    home.mkdir()
    (home / "sideband.toml").write_text('[policy.deny]\n"store.my-store" = "there is another one"\n')
    return environment


def test_tests_of_all_projects_pass(projects, installed):
    done = installed.run(
        "python", "-m", "pytest", "--import-mode=importlib", "-W", "error", "-p", "no:cacheprovider", "-q", "-rs",
        "--durations", "10", "--rootdir", projects, *(folder / "tests" for folder in sorted(projects.iterdir())),
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_projects_pass_the_type_checker(projects, installed):
    paths = [
        path for folder in sorted(projects.iterdir()) for path in (*folder.glob("src/*"), *folder.glob("tests/*.py"))
    ]
    config = projects / "sideband-my-op" / "pyproject.toml"
    done = installed.run("python", "-m", "mypy", "--config-file", config, "--cache-dir", projects / ".cache", *paths)
    shutil.rmtree(projects / ".cache", ignore_errors=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["a", "my", "abcdefghijklmnopqrstuvwxyz-0"])
def test_all_projects_pass_the_linter_whatever_their_name(name, tmp_path):
    bake_all(tmp_path, name)
    for words in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [RUFF, *words, "--no-cache", "."], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


COMMANDS = {
    "plugins check": "",
    "op my_op.set key=tea text=green": "",
    "op my_op.get key=tea": "green",
    "op shell.run binary=ls": "denied by the configuration",
    "skills validate SKILL": "no problems found",
    "call my_releases.seen --yes": "{}",
    "my-command --family my_op": "my_op.set",
    "tools list": "my_tool.calculate",
}


def test_installed_projects_can_be_used(projects, installed):
    skill = str(projects / "sideband-my-releases" / "src" / "sideband_my_releases")
    words = [[skill if word == "SKILL" else word for word in line.split()] for line in COMMANDS]
    done = installed.run("python", "-c", RUNNING, json.dumps(words))
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(COMMANDS), done.stderr
    for (line, part), (code, out, err) in zip(COMMANDS.items(), results, strict=True):
        assert (code, part in out + err) == (3 if "shell" in line else 0, True), (line, out, err)
    for kind in KINDS:
        assert f"sideband-my-{kind}" in results[0][1]


def test_new_distribution_has_valid_settings(tmp_path):
    folder = bake("distribution", {"project": "acme-agent"}, tmp_path)
    settings = Settings.model_validate(tomllib.loads((folder / "sideband.toml").read_text()))
    assert settings.dist.name == "acme-agent"
    assert "sideband-guard-limits" in settings.dist.packages
    assert tuple(settings.policy.guards) == ("guard-limits",)
