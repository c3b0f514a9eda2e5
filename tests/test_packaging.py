"""Each wheel can be installed and imported with only its declared dependencies."""

import json
import re
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[1]
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


def test_packages_name_the_same_pages_of_the_project():
    """The addresses are in the reserved domain `example` until the project has a public one, see CONTRIBUTING.md."""
    urls = [tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["urls"] for folder in FOLDERS]
    assert all(one == urls[0] for one in urls)
    assert list(urls[0]) == ["Documentation", "Source", "Changelog", "Issues"]
    assert len({urlsplit(address).hostname for address in urls[0].values()}) == 1


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "."])
def test_wheel_can_be_installed_and_imported_alone(folder, wheels, environment):
    environment.install(wheels[folder])
    with zipfile.ZipFile(wheels[folder]) as archive:
        files = archive.namelist()
    tops = sorted({name.partition("/")[0] for name in files if name.endswith("/__init__.py") and name.count("/") == 1})
    assert tops
    assert all(f"{top}/py.typed" in files for top in tops)
    modules = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in files
        if name.endswith(".py")
        and name.partition("/")[0] in tops
        and not name.endswith("__main__.py")
        and all(part.isidentifier() for part in name.removesuffix(".py").split("/"))  # no templates
    )
    done = environment.run(
        "python", "-P", "-s", "-c", IMPORTING.format(modules=modules, tops=tops, extras=_extras(folder))
    )
    assert done.returncode == 0, done.stderr


def _extras(folder):
    """Return the modules that are installed only with an extra."""
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    lines = (line for lines in project.get("optional-dependencies", {}).values() for line in lines)
    return sorted({re.split(r"[\s\[<>=!~;]", line)[0].replace("-", "_") for line in lines})


INSTALL = (ROOT / "docs" / "install.md").read_text()
INSTALLED = re.findall(r"^\| `(sideband.*?)` \|", INSTALL, re.MULTILINE)


@pytest.mark.parametrize("words", INSTALLED[1:])
def test_packages_of_the_page_on_installation_can_be_installed(words, environment):
    environment.install(*words.split())
    program = (
        ("sideband", "doctor", "--isolation", "none")
        if "sideband-cli" in words
        else ("python", "-c", "import sideband")
    )
    done = environment.run(*program)
    assert done.returncode == 0, done.stdout + done.stderr


def test_page_on_installation_names_every_extra_and_only_packages_that_exist():
    projects = [tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in FOLDERS]
    extras = {f"{one['name']}[{extra}]" for one in projects for extra in one.get("optional-dependencies", ())}
    named = {word for words in INSTALLED for word in words.split()}
    assert extras <= named
    assert named - extras <= {one["name"] for one in projects}


def test_default_distribution_installs_a_working_command(environment):
    environment.install(INSTALLED[0])
    done = environment.run("sideband", "demo", "--json")
    assert done.returncode == 0, done.stderr
    assert '"Neptune"' not in done.stdout
    assert '"Mercury"' in done.stdout


WITHOUT_AGENT = ("core", "plugins/cli", "plugins/crypto", "plugins/store-sqlite")
# Words of a command, and part of what it prints.
WORKING = {
    "--help": "sessions  ",
    "run --help": "--model",
    "ops list": "crypto.hash",
    "ops show crypto.hash": "requires: crypto",
    "plugins list": "sideband-crypto",
    "plugins check": "sideband-crypto",
    "plugins why crypto": "op.crypto: active",
    "hooks list": "op_call",
    "doctor --isolation none": "isolation",
    "audit tail": "crypto.hash",
    "audit query": "crypto.hash",
    "audit verify": "ledger",
    "skills list": "skills",
    "sdk stubs stubs": "sideband_sdk/crypto.py",
}
NEED_AGENT = ("run hello", "chat", "sessions list", "sessions show last")
# Runs commands in one process, and prints the exit code, output and errors of each.
RUNNING = """
import contextlib, io, json, sys
from sideband.__main__ import main

results = {}
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = main(words.split())
        except SystemExit as ended:
            code = ended.code
    results[words] = [code, out.getvalue(), err.getvalue()]
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def without_agent(wheels, make_environment):
    """An environment with only the kernel, the command line, one op family and a store."""
    environment = make_environment("without-agent")
    environment.install(*(wheels[name] for name in WITHOUT_AGENT))
    names = {name for name in environment.installed() if name.startswith("sideband")}
    assert names == {
        "sideband-core",
        "sideband-cli",
        "sideband-crypto",
        "sideband-project-instructions",
        "sideband-settings-file",
        "sideband-skill-packages",
        "sideband-store-sqlite",
    }
    assert environment.run("sideband", "op", "crypto.hash", "data=abc").returncode == 0
    return environment


@pytest.fixture(scope="module")
def results(without_agent):
    """The exit code, output and errors of each command."""
    commands = [*WORKING, *NEED_AGENT, *(f"{words} --json" for words in NEED_AGENT)]
    done = without_agent.run("python", "-c", RUNNING, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("words", WORKING)
def test_command_without_agent_features_works_without_the_agent(results, words):
    code, out, err = results[words]
    assert code == 0, err
    assert WORKING[words] in out


def test_audit_why_explains_an_effect_without_the_agent(without_agent):
    listed = without_agent.run("sideband", "audit", "query", "--op", "crypto.hash", "--json")
    effect = json.loads(listed.stdout)[0]["effect"]
    done = without_agent.run("sideband", "audit", "why", effect)
    assert done.returncode == 0, done.stderr
    assert effect in done.stdout
    assert "crypto.hash" in done.stdout
    unknown = without_agent.run("sideband", "audit", "why", "call_1", "--json")
    assert (unknown.returncode, json.loads(unknown.stdout)["error"]["code"]) == (2, "effect.missing")


@pytest.mark.parametrize("words", NEED_AGENT)
def test_command_with_agent_features_suggests_installing_the_agent(results, words):
    code, out, err = results[words]
    assert (code, out) == (5, "")
    assert "[agent.missing]" in err
    assert "pip install sideband-agent" in err
    error = json.loads(results[f"{words} --json"][1])["error"]
    assert error["code"] == "agent.missing"
    assert "pip install sideband-agent" in error["hint"]
