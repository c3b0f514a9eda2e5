"""From words to a command, and from whatever ends it to an exit code and a message."""

import itertools
import json
import subprocess
import sys
from textwrap import dedent

import pytest
from sideband.__main__ import main
from sideband.settings import load_settings, trust_project

_numbers = itertools.count()

GREET = """
    from sideband import SidebandError
    from sideband.commands import Command

    class Refused(SidebandError):
        code = "greet.refused"
        exit_code = 3

    def run(arguments):
        if arguments.name == "refuse":
            raise Refused("no greeting", hint="ask again")
        if arguments.name == "pretend":
            pretending = Refused("no\\rerror\\nhint: run this", hint="a\\nhint: b")
            pretending.traceback = "x\\nerror: all is well"
            raise pretending
        if arguments.name == "interrupt":
            raise KeyboardInterrupt
        print("hello", arguments.name)
        return 0

    def configure(parser):
        parser.add_argument("name")
        parser.add_argument("--json", action="store_true")

    def sideband_commands():
        return Command("{name}", "Greet somebody.", configure, run)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("SIDEBAND_HOME", str(folder))
    return folder


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Write a distribution with one command."""

    def make(name, source=GREET, distribution="", requires=""):
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


def test_a_command_runs_and_returns_its_exit_code(command, capsys):
    command("greet")
    assert main(["greet", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"


def test_an_error_is_told_with_its_code_and_hint_and_its_exit_code_is_returned(command, capsys):
    command("greet")
    assert main(["greet", "refuse"]) == 3
    assert capsys.readouterr() == ("", "error: no greeting [greet.refused]\nhint: ask again\n")


def test_no_line_of_what_a_skill_says_begins_like_one_of_the_host(command, capsys):
    command("greet")
    assert main(["greet", "pretend"]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "  x",
        "  error: all is well",
        "error: no\ufffderror",
        "  hint: run this [greet.refused]",
        "hint: a",
        "  hint: b",
    ]


def test_with_json_an_error_is_data_on_standard_output(command, capsys):
    command("greet")
    assert main(["greet", "refuse", "--json"]) == 3
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert (error["code"], error["message"], error["hint"]) == ("greet.refused", "no greeting", "ask again")
    assert err == ""


@pytest.mark.parametrize("words", [["greet"], ["greet", "Ada", "--loud"]])
def test_wrong_arguments_are_a_usage_error(command, capsys, words):
    command("greet")
    assert main(words) == 2
    err = capsys.readouterr().err
    assert "[usage]" in err
    assert "sideband greet --help" in err


def test_an_unknown_command_names_the_closest(command, capsys):
    command("greet")
    assert main(["gret"]) == 2
    assert "did you mean `greet`" in capsys.readouterr().err


def test_an_interrupted_command_says_so(command, capsys):
    command("greet")
    assert main(["greet", "interrupt"]) == 130
    assert capsys.readouterr().err.startswith("error: interrupted")


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_the_commands_with_what_they_do(command, capsys, words):
    command("greet")
    assert main(words) == 0
    assert "greet" in (out := capsys.readouterr().out)
    assert "Greet somebody." in out


def test_help_lists_a_command_that_can_not_be_used_with_the_reason(command, capsys):
    command("broken", "1 / 0")
    command("greet")
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "ZeroDivisionError" in out
    assert "Greet somebody." in out


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("sideband_commands = lambda: None", "does not return the `Command` of that name"),
        (GREET.replace("{name}", "other"), "does not return the `Command` of that name"),
    ],
)
def test_a_command_that_can_not_be_used_is_a_plugin_error(command, capsys, source, told):
    command("broken", source)
    assert main(["broken"]) == 5
    assert told in capsys.readouterr().err


def test_a_command_for_another_core_is_not_imported(command, capsys):
    command("greet", "1 / 0", requires="Requires-Dist: sideband-core>=99\n")
    assert main(["greet", "Ada"]) == 5
    err = capsys.readouterr().err
    assert "ZeroDivisionError" not in err
    assert "99" in err


def test_two_distributions_with_one_command_are_both_named(command, capsys):
    command("greet", distribution="first")
    command("greet", distribution="second")
    assert main(["greet", "Ada"]) == 5
    err = capsys.readouterr().err
    assert "[plugin.conflict]" in err
    assert "first" in err
    assert "second" in err


def test_the_users_file_can_deny_a_command(command, capsys, home):
    command("greet", "1 / 0")
    (home / "sideband.toml").write_text('[policy.deny]\n"command.greet" = "not in this house"\n')
    assert main(["greet", "Ada"]) == 3
    assert "not in this house" in capsys.readouterr().err


def test_a_variable_can_say_which_commands_may_load(command, capsys, monkeypatch):
    command("greet", "1 / 0")
    monkeypatch.setenv("SIDEBAND_POLICY__ONLY", '["op.http"]')
    assert main(["greet", "Ada"]) == 3
    assert "ZeroDivisionError" not in capsys.readouterr().err


def test_without_any_command_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr("sideband.command_line._run.discover", lambda home, policy: ())
    assert main(["greet"]) == 2
    assert "sideband-cli" in capsys.readouterr().err


def test_a_reader_that_has_had_enough_is_no_error(tmp_path):
    code = (
        "import sys\n"
        "from sideband.command_line import _run as command_line\n"
        "def flood(arguments):\n"
        "    while True: print('x' * 99_999)\n"
        "command_line._run = flood\n"
        "sys.exit(command_line.run([]))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
    assert (process.returncode, err) == (0, "")


def test_a_trusted_project_file_can_deny_a_command(command, capsys, home, tmp_path, monkeypatch):
    command("greet", "1 / 0")
    project = tmp_path / "project"
    project.mkdir()
    (project / "sideband.toml").write_text('[policy.deny]\n"command.greet" = "not in this project"\n')
    monkeypatch.chdir(project)
    assert main(["greet", "Ada"]) == 5
    home.mkdir(exist_ok=True)
    trust_project(home, project)
    capsys.readouterr()
    assert main(["greet", "Ada"]) == 3
    assert "not in this project" in capsys.readouterr().err


def test_a_variable_of_a_section_that_is_not_there_is_noticed(home):
    loaded = load_settings(home, environment={"SIDEBAND_POLCY__TIMEOUT": "3", "SIDEBAND_POLICY_TIMEOUT": "3"})
    assert "did you mean `policy`" in loaded.notices[0]
    assert "two underscores" in loaded.notices[1]


def test_the_version_is_told_without_importing_what_takes_longer_than_that():
    code = (
        "import sys; before = set(sys.modules); from sideband.__main__ import main; main(['--version']); "
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('sideband')))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path = {sys.path!r}; {code}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    version, imported = done.stdout.splitlines()
    assert version.startswith("sideband ")
    assert not {"typing", "re", "argparse", "asyncio", "pydantic"}.intersection(json.loads(imported.replace("'", '"')))
