"""Environments of skills in a sandboxed worker, with real wheels that contain compiled code."""

import json
import subprocess
import sys

import pytest
from sideband import CallRequest, Host
from sideband.environments import EnvironmentMissing
from sideband.workers import SkillFailed
from sideband_skill_packages import PackageSource
from sideband_skill_packages import install as install_packages

CLOSED = r"Permission denied|No such file|Read-only"
BLOCK = "# /// script\n# dependencies = [{}]\n# ///\n"
NUMBERS = (
    BLOCK.format("'numpy', 'pydantic>=2'")
    + """
import sys

from pydantic import BaseModel, ValidationError

from sideband.skill import tool


class Row(BaseModel):
    values: list[float]


@tool
async def total(values: list[str]) -> list:
    '''Return the sum, and the determinant of a matrix.'''
    import numpy

    row = Row(values=values)
    return [float(numpy.array(row.values).sum()), round(float(numpy.linalg.det(numpy.eye(200) * 1.01)), 3)]


@tool
async def refuse() -> str:
    '''Return the type of pydantic's validation error.'''
    try:
        Row(values="x")
    except ValidationError as error:
        return error.errors()[0]["type"]


@tool
async def spoil() -> str:
    '''Try to change the packages.'''
    import numpy

    with open(numpy.__file__, "a") as file:
        file.write("# mine")


@tool
async def has(module: str) -> str:
    '''Where a module comes from.'''
    return __import__(module).__name__
"""
)
SPY = """
import os

from sideband.skill import tool


@tool
async def list_folder(path: str) -> list:
    '''List it.'''
    return os.listdir(path)


@tool
async def read(path: str) -> str:
    '''Read it.'''
    with open(path) as file:
        return file.read()


@tool
async def has(module: str) -> str:
    '''Where a module comes from.'''
    return __import__(module).__name__
"""


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """A folder with wheels of numpy, pydantic and their dependencies for this interpreter."""
    folder = tmp_path_factory.mktemp("wheels")
    python = sys._base_executable  # the venv has no pip
    subprocess.run(
        [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:",
         "--dest", folder, "numpy", "pydantic>=2"],
        check=True,
    )  # fmt: skip
    return folder


@pytest.fixture
def numbers(make_skill):
    return make_skill("numbers", NUMBERS)


@pytest.fixture
def spy(make_skill):
    return make_skill("spy", SPY)


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A home shared by all hosts of this module, since installing takes seconds."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
async def host(home, numbers, spy, wheels):
    """A host with the installed dependencies of the skill `numbers`."""
    async with Host(home=home, skill_dirs=[numbers, spy]) as host:
        for skill in (await host.skills()).skills:
            await install_packages(host.environments, skill, PackageSource(wheels=wheels))
        yield host


@pytest.fixture
async def environment(host):
    (skill,) = [skill for skill in (await host.skills()).skills if skill.key == "numbers"]
    return host.environments.find(skill)


@pytest.mark.anyio
async def test_compiled_packages_work_in_the_sandbox(host):
    result = await host.run(CallRequest("numbers.total", {"values": ["1.5", "2"]}))
    assert result.output == [3.5, round(1.01**200, 3)]
    assert result.isolation == "full"
    assert await host.call("numbers.refuse") == "list_type"


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["numbers.has", "spy.has"])
async def test_packages_of_the_host_are_invisible(host, tool):
    for module in ["attrs", "anyio", "pluggy", "sideband.broker", "sideband_skills", "pytest"]:
        with pytest.raises(SkillFailed, match="No module named"):
            await host.call(tool, module=module)


@pytest.mark.anyio
async def test_packages_of_one_skill_are_invisible_to_another(host, environment):
    assert await host.call("numbers.has", module="annotated_types") == "annotated_types"
    with pytest.raises(SkillFailed, match="No module named"):
        await host.call("spy.has", module="annotated_types")
    with pytest.raises(SkillFailed, match=CLOSED):
        await host.call("spy.list_folder", path=str(environment.path))
    with pytest.raises(SkillFailed, match=CLOSED):
        await host.call("spy.read", path=str(environment.path / "sideband-environment.json"))


@pytest.mark.anyio
async def test_skill_cannot_modify_its_packages(host, environment):
    before = (environment.path / "numpy" / "__init__.py").read_bytes()
    with pytest.raises(SkillFailed, match=CLOSED):
        await host.call("numbers.spoil")
    assert (environment.path / "numpy" / "__init__.py").read_bytes() == before


@pytest.mark.anyio
async def test_skill_without_its_environment_does_not_run(tmp_path, numbers):
    async with Host(home=tmp_path / "home", skill_dirs=[numbers]) as host:
        with pytest.raises(EnvironmentMissing, match="numpy, pydantic>=2"):
            await host.call("numbers.refuse")


def test_hint_of_a_missing_environment_installs_it(sideband, numbers, wheels):
    refused = sideband("call", "numbers.refuse", "--skill-dir", numbers, "--json")
    assert refused.returncode == 5
    error = json.loads(refused.stdout)["error"]
    assert error["code"] == "environment.missing"
    assert f"`sideband skills install numbers --skill-dir {numbers}`" in error["hint"]
    installed = sideband("skills", "install", "numbers", "--skill-dir", numbers, "--wheels", wheels)
    assert installed.returncode == 0, installed.stderr
    assert "… + numpy==" in installed.stderr
    assert "installed" in installed.stdout
    done = sideband("call", "numbers.refuse", "--skill-dir", numbers)
    assert (done.returncode, done.stdout) == (0, "list_type\n")


@pytest.fixture
def install(sideband, make_skill, wheels):
    """Return a function that installs skills, given as name to dependencies, and returns exit code and data."""

    def run(*words, **skills):
        folders = [make_skill(name, BLOCK.format(needs) if needs else "x = 1\n") for name, needs in skills.items()]
        places = [word for folder in folders for word in ("--skill-dir", folder)]
        done = sideband("skills", "install", *words, *places, "--wheels", wheels, "--json")
        return done.returncode, json.loads(done.stdout)

    return run


def test_install_as_json_lists_packages_and_environment(install):
    code, data = install("small", small="'annotated-types'")
    (row,) = data["skills"]
    assert code == 0
    assert (row["name"], row["state"], list(row["packages"])) == ("small", "installed", ["annotated-types"])
    assert row["environment"].endswith(row["environment"].rpartition("/")[2])
    assert row["requirements"] == ["annotated-types"]


def test_install_reports_skills_already_installed_or_without_dependencies(install, sideband, tmp_path, wheels):
    install("small", small="'annotated-types'")
    folders = ["--skill-dir", tmp_path / "skills" / "small"]
    again = sideband("skills", "install", "--all", *folders, "--wheels", wheels)
    assert again.returncode == 0
    assert "already installed" in again.stdout
    assert "not needed" in again.stdout  # for the demo skill
    shown = sideband("skills", "show", "small", *folders)
    assert "depends on: annotated-types" in shown.stdout
    assert "installed: annotated-types 0" in shown.stdout
    data = json.loads(sideband("skills", "show", "small", *folders, "--json").stdout)
    assert list(data["packages"]) == ["annotated-types"]


def test_failed_install_of_one_skill_does_not_stop_the_others(install):
    code, data = install("--all", bad="'nowhere-to-be-found'", good="'annotated-types'")
    states = {row["name"]: row["state"] for row in data["skills"]}
    assert code == 1
    assert (states["bad"], states["good"]) == ("failed", "installed")
    assert next(row for row in data["skills"] if row["name"] == "bad")["error"]["code"] == "environment.packages"


def test_failed_install_of_a_single_skill_is_the_commands_error(install):
    code, data = install("bad", bad="'nowhere-to-be-found'")
    assert code == 1
    assert data["error"]["code"] == "environment.packages"


def test_install_names_the_reason_why_a_skill_did_not_load(install):
    code, data = install("bad", bad="'a @ https://example.test/a.whl'")
    assert code == 2
    assert "https://example.test/a.whl" in data["error"]["message"]


def test_skill_for_another_python_is_shown_and_not_installed(sideband, make_skill):
    folder = make_skill("old", "# /// script\n# requires-python = '<3'\n# dependencies = ['a']\n# ///\n")
    shown = sideband("skills", "show", "old", "--skill-dir", folder)
    assert shown.returncode == 0
    assert "requires Python <3" in shown.stdout
    assert "Python <3" in shown.stderr
    assert sideband("skills", "install", "old", "--skill-dir", folder).returncode == 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--all"),
        (["demo", "--all"], "--all"),
        (["nowhere"], "unknown skill `nowhere`"),
        (["demo", "--wheels", "/nowhere"], "not a folder"),
    ],
)
def test_install_with_invalid_arguments_is_a_usage_error(sideband, words, message):
    done = sideband("skills", "install", *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_skills_show_includes_requested_memory_and_isolation(sideband, make_skill):
    folder = make_skill("heavy", "x = 1\n", memory="256M", isolation="call")
    shown = sideband("skills", "show", "heavy", "--skill-dir", folder)
    assert "memory limit: 256 MiB" in shown.stdout
    assert "each call runs in its own worker" in shown.stdout
    data = json.loads(sideband("skills", "show", "heavy", "--skill-dir", folder, "--json").stdout)
    assert (data["memory"], data["alone"]) == (256 << 20, True)
