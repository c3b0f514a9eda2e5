"""Finding and running commands, and the exit codes and messages of their errors."""

import json
import re
import signal
import subprocess
import sys

import pytest
from sideband import __version__
from sideband.__main__ import main
from sideband.settings import load_settings, trust_project

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
        return Command("{name}", "Print a greeting.", configure, run)
"""


def test_command_runs_and_returns_its_exit_code(command, capsys):
    command("greet", GREET)
    assert main(["greet", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"


def test_error_is_printed_with_code_and_hint(command, capsys):
    command("greet", GREET)
    assert main(["greet", "refuse"]) == 3
    assert capsys.readouterr() == ("", "error: no greeting [greet.refused]\nhint: ask again\n")


def test_text_of_an_error_cannot_imitate_messages_of_the_host(command, capsys):
    command("greet", GREET)
    assert main(["greet", "pretend"]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "  x",
        "  error: all is well",
        "error: no\\rerror",
        "  hint: run this [greet.refused]",
        "hint: a",
        "  hint: b",
    ]


def test_json_error_is_printed_to_stdout(command, capsys):
    command("greet", GREET)
    assert main(["greet", "refuse", "--json"]) == 3
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert (error["code"], error["message"], error["hint"]) == ("greet.refused", "no greeting", "ask again")
    assert err == ""


@pytest.mark.parametrize("words", [["greet"], ["greet", "Ada", "--loud"]])
def test_invalid_arguments_are_a_usage_error(command, capsys, words):
    command("greet", GREET)
    assert main(words) == 2
    err = capsys.readouterr().err
    assert "[usage]" in err
    assert "sideband greet --help" in err


def test_unknown_command_suggests_the_closest(command, capsys):
    command("greet", GREET)
    assert main(["gret"]) == 2
    assert "did you mean `greet`" in capsys.readouterr().err


def test_interrupted_command_exits_with_130(command, capsys):
    command("greet", GREET)
    assert main(["greet", "interrupt"]) == 130
    assert capsys.readouterr().err.startswith("error: interrupted")


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"], ["help", "help"]])
def test_help_lists_commands_with_summaries(command, capsys, words):
    command("greet", GREET)
    assert main(words) == 0
    assert "greet" in (out := capsys.readouterr().out)
    assert "Print a greeting." in out


def test_help_imports_no_command_and_names_the_package_of_one_whose_summary_is_computed(command, capsys):
    command("broken", "1 / 0")
    command("greet", GREET)
    command("computed", "from sideband.commands import Command\nCommand('computed', 'a' + 'b', None, None)\n1 / 0")
    command(
        "keyword", "from sideband import commands\nx = commands.Command(name='keyword', summary='By \\x1b[1m name')"
    )
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"broken +\(from broken 1.0\)", out)
    assert re.search(r"computed +\(from computed 1.0\)", out)
    assert r"By \x1b[1m name" in out
    assert "Print a greeting." in out


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        pytest.param("1 / 0", "ZeroDivisionError", id="import"),
        pytest.param("sideband_commands = lambda: None", "must return a `Command`", id="type"),
        pytest.param(GREET.replace("{name}", "other"), "must return a `Command` of that name", id="name"),
    ],
)
def test_unusable_command_is_a_plugin_error(command, capsys, source, problem):
    command("broken", source)
    assert main(["broken"]) == 5
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("problem", ["RuntimeError('no luck')", "SystemExit(7)"])
def test_command_that_cannot_configure_its_parser_is_a_plugin_error(command, capsys, problem):
    command("broken", GREET.replace('parser.add_argument("name")', f"raise {problem}"))
    assert main(["broken", "--json"]) == 5
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["plugin"]) == ("plugin.invalid", "broken")
    assert error["message"].startswith("command `broken` (broken 1.0): its `configure` failed: ")


def test_command_for_another_core_is_not_imported(command, capsys):
    command("greet", "1 / 0", requires="Requires-Dist: sideband-core>=99\n")
    assert main(["greet", "Ada"]) == 5
    err = capsys.readouterr().err
    assert "ZeroDivisionError" not in err
    assert "99" in err


def test_conflicting_distributions_are_both_named(command, capsys):
    command("greet", GREET, distribution="first")
    command("greet", GREET, distribution="second")
    assert main(["greet", "Ada"]) == 5
    err = capsys.readouterr().err
    assert "[plugin.conflict]" in err
    assert "first" in err
    assert "second" in err


def test_user_file_can_deny_a_command(command, capsys, home):
    command("greet", "1 / 0")
    (home / "sideband.toml").write_text('[policy.deny]\n"command.greet" = "not in this house"\n')
    assert main(["greet", "Ada"]) == 3
    assert "not in this house" in capsys.readouterr().err


def test_variable_can_restrict_commands(command, capsys, monkeypatch):
    command("greet", "1 / 0")
    monkeypatch.setenv("SIDEBAND_POLICY__ONLY", '["op.http"]')
    assert main(["greet", "Ada"]) == 3
    assert "ZeroDivisionError" not in capsys.readouterr().err


def test_missing_commands_name_the_package_to_install(capsys, monkeypatch):
    monkeypatch.setattr("sideband.command_line._run.discover", lambda home, policy: ())
    assert main(["greet"]) == 2
    assert "sideband-cli" in capsys.readouterr().err


def test_closed_pipe_is_not_an_error(tmp_path):
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


def test_broken_pipe_that_is_not_the_output_is_an_error(command, capsys):
    source = GREET.replace("raise KeyboardInterrupt", "raise ExceptionGroup('', [BrokenPipeError(32, 'Broken pipe')])")
    command("greet", source)
    assert main(["greet", "interrupt"]) == 1
    assert capsys.readouterr().err == "error: BrokenPipeError: Broken pipe [os]\n"


def test_trusted_project_file_can_deny_a_command(command, capsys, home, tmp_path, monkeypatch):
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


def test_variable_of_an_unknown_section_causes_a_notice(home):
    loaded = load_settings(home, environment={"SIDEBAND_POLCY__TIMEOUT": "3", "SIDEBAND_POLICY_TIMEOUT": "3"})
    assert "did you mean `policy`" in loaded.notices[0]
    assert "two underscores" in loaded.notices[1]


def test_version_is_printed_without_slow_imports():
    code = (
        "import sys; before = set(sys.modules); from sideband.__main__ import main; main(['--version']); "
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('sideband')))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path = {sys.path!r}; {code}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    version, imported = done.stdout.splitlines()
    assert version.startswith("sideband ")
    assert not {"typing", "re", "argparse", "asyncio", "pydantic"}.intersection(json.loads(imported.replace("'", '"')))


ACTIONS = """
    from sideband.commands import Command

    def configure(parser):
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        show = actions.add_parser("show", help="show an animal")
        show.add_argument("name", nargs="*", metavar="NAME", help="the animal")
        show.add_argument("--size", choices=["small", "large"])
        show.add_argument("--json", action="store_true")
        wrap = actions.add_parser("wrap")
        wrap.add_argument("--dry", action="store_true")
        wrap.add_argument("words", nargs="...")

    def run(arguments):
        print(sorted((name, value) for name, value in vars(arguments).items() if value))
        return 0

    def sideband_commands():
        return Command("{name}", "Show animals.", configure, run)
"""


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        pytest.param("zoo shw", "unknown action `shw` (did you mean `show`?)", "choose from show, wrap", id="action"),
        pytest.param(
            "zoo show --siez large owl",
            "unknown option `--siez` (did you mean `--size`?)",
            "`sideband zoo show --help`",
            id="option of an action",
        ),
        pytest.param(
            "greet --jsn Ada", "unknown option `--jsn` (did you mean `--json`?)", "`sideband greet --help`", id="option"
        ),
        pytest.param("greet --jsn=a\tb Ada", "unknown option `--jsn` (did you", "greet --help`", id="with value"),
        pytest.param("zoo show --size lrge", "unknown --size `lrge` (did you mean `large`?)", "small", id="choice"),
        pytest.param(
            "zoo --size large show", "unknown option `--size`; the options of an action follow it", "", id="early"
        ),
        pytest.param(
            "--jsno greet", "unknown option `--jsno` (did you mean `--json`?)", "after the command", id="first option"
        ),
        pytest.param("help gret", "unknown command `gret` (did you mean `greet`?)", "", id="help of a command"),
        pytest.param("help zoo shw", "unknown action `shw` (did you mean `show`?)", "", id="help of an action"),
    ],
)
def test_misspelled_word_is_a_usage_error_with_a_suggestion(command, capsys, words, problem, hint):
    command("greet", GREET)
    command("zoo", ACTIONS)
    assert main(words.split(" ")) == 2
    out, err = capsys.readouterr()
    assert (out, problem in err, hint in err) == ("", True, True), err


@pytest.mark.parametrize("words", [["greet", "--js", "Ada"], ["zoo", "show", "--si", "large"], ["zoo", "wrap", "--dr"]])
def test_abbreviated_option_is_refused(command, capsys, words):
    command("greet", GREET)
    command("zoo", ACTIONS)
    assert main(words) == 2
    assert "did you mean" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["greet", "--", "--name"], "hello --name\n"),
        (["greet", "--what is this?"], "hello --what is this?\n"),
        (["zoo", "wrap", "ls", "--all"], "[('action', 'wrap'), ('words', ['ls', '--all'])]\n"),
    ],
)
def test_word_that_only_looks_like_an_option_is_kept(command, capsys, words, printed):
    command("greet", GREET)
    command("zoo", ACTIONS)
    assert main(words) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    "words",
    [
        "--json zoo show owl",
        "zoo --json show owl",
        "zoo show --json owl",
        "zoo show owl --json",
        "--json zoo --json show --json owl",
    ],
)
def test_json_option_is_accepted_in_any_position(command, capsys, words):
    command("zoo", ACTIONS)
    assert main(words.split()) == 0
    assert capsys.readouterr().out == "[('action', 'show'), ('json', True), ('name', ['owl'])]\n"


def test_json_option_before_the_command_does_not_become_the_value_of_an_option(command, capsys):
    command("zoo", ACTIONS)
    assert main(["--json", "zoo", "show", "--size", "large", "--", "owl"]) == 0
    assert capsys.readouterr().out == "[('action', 'show'), ('json', True), ('name', ['owl']), ('size', 'large')]\n"


@pytest.mark.parametrize("words", [["--json", "greet", "refuse"], ["--json", "gret"], ["--json", "--jsno"]])
def test_error_is_json_if_the_option_precedes_the_command(command, capsys, words):
    command("greet", GREET)
    assert main(words)
    assert "error" in json.loads(capsys.readouterr().out)


def test_json_after_two_dashes_is_not_an_option(command, capsys):
    command("zoo", ACTIONS)
    assert main(["zoo", "show", "--size", "none", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("error: unknown --size `none`")


@pytest.mark.parametrize(
    ("words", "usage"), [("help greet", "usage: sideband greet "), ("help zoo show", "usage: sideband zoo show ")]
)
def test_help_of_a_command_shows_its_arguments(command, capsys, words, usage):
    command("greet", GREET)
    command("zoo", ACTIONS)
    with pytest.raises(SystemExit, match="0"):
        main(words.split())
    assert capsys.readouterr().out.startswith(usage)


@pytest.mark.parametrize("words", [["--version", "--json"], ["--json", "--version"]])
def test_version_is_available_as_json(capsys, words):
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == {"version": __version__}


STOP = "class Stop(BaseException): pass\nraise Stop('here')\n"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import sys; sys.exit(7)", "it tried to exit the program (SystemExit: 7)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        (STOP, "Stop: here"),
        ("def sideband_commands(): raise SystemExit", "it tried to exit the program (SystemExit: None)"),
    ],
)
def test_command_that_exits_when_it_is_imported_fails_and_others_work(command, capsys, source, problem):
    command("broken", source)
    command("greet", GREET)
    assert main(["broken"]) == 5
    assert f"cannot be imported: {problem} [plugin.import]" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "Print a greeting." in capsys.readouterr().out


def test_interrupt_by_the_user_during_an_import_is_not_an_error_of_the_plugin(command, capsys):
    command("slow", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**9): pass\n")
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it
    try:
        assert main(["slow"]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    assert capsys.readouterr().err.startswith("error: interrupted")


def test_command_may_require_an_extra(command, capsys, tmp_path):
    command("greet", GREET)
    (points,) = tmp_path.glob("site-*/greet-1.0.dist-info/entry_points.txt")
    points.write_text(points.read_text().replace("\n", " [fast]\n").replace("] [fast]", "]"))
    metadata = points.with_name("METADATA")
    metadata.write_text(metadata.read_text() + "Provides-Extra: fast\n")
    assert main(["greet", "Ada"]) == 0
    metadata.write_text(metadata.read_text() + "Requires-Dist: no-such-thing; extra == 'fast'\n")
    assert main(["greet", "Ada"]) == 5
    assert "requires no-such-thing, but it is not installed" in capsys.readouterr().err


def test_conflict_with_an_incompatible_command_names_both(command, capsys):
    command("greet", GREET, distribution="first", requires="Requires-Dist: sideband-core>=99\n")
    command("greet", GREET, distribution="second")
    assert main(["greet", "Ada"]) == 5
    assert re.search(r"first 1.0 .* and by second 1.0 .* \[plugin.conflict\]", capsys.readouterr().err)


@pytest.mark.parametrize(
    "text",
    [
        "[policy\n",
        "policy = 1\n",
        "[polcy.deny]\n",
        '[policy]\ndeny = {"command.greet" = 1}\n',
        '[policy]\ndney = {"command.greet" = "no"}\n',
        '[policy]\nonly = "command.other"\n',
        "[policy]\nconflicts = 1\n",
        "[policy]\ntimeout = 9999\n",  # exceeds the default of another key, so that the whole table is invalid
    ],
)
def test_command_is_not_imported_while_it_is_unknown_which_plugins_may_load(command, capsys, home, text):
    command("greet", "1 / 0")
    (home / "sideband.toml").write_text(text)
    assert main(["greet", "Ada"]) == 5
    assert "[config.invalid]" in capsys.readouterr().err
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"greet +\(unavailable: configuration `", out)
    assert "ZeroDivisionError" not in out


def test_command_runs_if_another_part_of_the_configuration_is_invalid(command, capsys, home):
    command("greet", GREET)
    command("other", "1 / 0")
    (home / "sideband.toml").write_text(
        '[agent]\nmodle = "x"\n[policy]\ntimeout = "x"\ndeny = {"command.other" = "no"}\n'
    )
    assert main(["greet", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"
    assert main(["other"]) == 3
