"""The command line as a process: exit codes, errors as text and as data, settings and their sources, plugins."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest

HELLO = "from sideband.skill import sql, tool\n@tool\nasync def greet(name: str) -> str:\n    return f'hello {name}'\n"


@pytest.fixture
def hello(make_skill):
    return make_skill("hello", HELLO)


def error_of(done):
    return json.loads(done.stdout)["error"]


def test_a_call_prints_its_result_and_ends_with_0(sideband, hello):
    done = sideband("call", "hello.greet", "name=Ada", "--skill-dir", hello)
    assert (done.returncode, done.stdout) == (0, "hello Ada\n")


def test_a_call_as_data_says_everything_about_it(sideband, hello):
    data = json.loads(sideband("call", "hello.greet", "name=Ada", "--skill-dir", hello, "--json").stdout)
    assert data["output"] == "hello Ada"
    assert data["tool"] == "hello.greet"
    assert data["isolation"] in ("full", "no-namespaces")
    assert data["effects"] == []


def test_options_may_stand_between_a_tool_and_its_values(sideband, hello):
    assert sideband("call", "hello.greet", "--skill-dir", hello, "name=Ada").stdout == "hello Ada\n"


def test_what_an_encoding_can_not_say_is_escaped_and_data_stays_json(sideband, hello):
    words = ["call", "hello.greet", "name=Zoë", "--skill-dir", hello]
    assert sideband(*words, PYTHONIOENCODING="ascii").stdout == "hello Zo\\xeb\n"
    assert json.loads(sideband(*words, "--json", PYTHONIOENCODING="ascii").stdout)["output"] == "hello Zoë"


def test_arguments_can_come_from_standard_input(sideband, hello):
    done = sideband("call", "hello.greet", "--input", "-", "--skill-dir", hello, stdin='{"name": "Bo"}')
    assert done.stdout == "hello Bo\n"


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (["call", "nobody.there"], "tool.unknown", 2),
        (["call", "hello.greet"], "call.arguments", 2),
        (["call", "hello.greet", "nme=Ada"], "call.arguments", 2),
        (["call", "hello.greet", "name"], "usage", 2),
        (["op", "no.op"], "op.unknown", 2),
        (["op", "sql.query"], "op.params", 2),
        (["op", "sql.query", "sql=SELECT 1", "db=x.db", "--grant", "sql:pth=x"], "capability.invalid", 2),
        (["op", "sql.query", "sql=SELECT 1", "db=x.db", "--grant", "sql:path=y.db"], "op.denied", 3),
        (["op", "sql.query", "sql=SELECT 1", "db=x.db"], "sql.missing", 1),
        (["op", "sql.query", "sql=SELECT 1", "db=x.db", "--set", "policy.timeout=-1"], "config.invalid", 5),
        (["audit", "why", "nothing"], "usage", 2),
        (["frobnicate"], "usage", 2),
        (["call", "hello.greet", "name=Ada", "--timeout", "nan"], "usage", 2),
        (["audit", "tail", "-n", "-1"], "usage", 2),
        (["audit", "query", "--limit", "0"], "usage", 2),
        (["audit", "query", "--since", "yesterday"], "usage", 2),
    ],
)
def test_each_failure_has_its_exit_code_and_is_data_on_demand(sideband, hello, words, code, exit_code):
    options = ["--skill-dir", hello] if words[0] == "call" else []
    done = sideband(*words, *options, "--json")
    assert done.returncode == exit_code, done.stderr
    assert error_of(done)["code"] == code
    assert "Traceback" not in done.stderr


def test_an_error_as_text_goes_to_standard_error_with_its_remedy(sideband):
    done = sideband("op", "sql.qery", "sql=SELECT 1")
    assert done.stdout == ""
    assert "did you mean `sql.query`" in done.stderr
    assert "hint:" in done.stderr


def test_a_skill_that_raises_ends_with_1_and_a_worker_that_dies_with_4(sideband, make_skill):
    skill = make_skill(
        "bad",
        "import os\nfrom sideband.skill import tool\n@tool\nasync def fail() -> None:\n    raise ValueError('no')\n"
        "@tool\nasync def die() -> None:\n    os._exit(1)\n",
    )
    assert sideband("call", "bad.fail", "--skill-dir", skill).returncode == 1
    assert sideband("call", "bad.die", "--skill-dir", skill).returncode == 4


def test_the_traceback_of_a_skill_is_shown_and_moves_no_cursor(sideband, make_skill):
    raises = "raise ValueError('\\x1b[31mred\\u202eder')"
    code = f"from sideband.skill import tool\n@tool\nasync def fail() -> None:\n    {raises}\n"
    done = sideband("call", "bad.fail", "--skill-dir", make_skill("bad", code))
    assert "tools.py:4 in fail" in done.stderr.partition("error:")[0]
    assert not {"\x1b", "\u202e"} & set(done.stderr)


def test_a_hint_about_a_skill_is_right_for_the_folders_that_were_given(sideband, hello):
    assert (
        f"`sideband skills show hello.greet --skill-dir {hello}`"
        in sideband("call", "hello.greet", "--skill-dir", hello).stderr
    )
    for words in (["call", "hello.greet"], ["skills", "show", "hello.greet"]):
        assert "`--skill-dir DIR`" in sideband(*words).stderr


def test_a_skill_that_loads_is_listed_with_what_is_wrong_with_it(sideband, hello):
    done = sideband("skills", "list", "--skill-dir", hello)
    assert "`greet` has no docstring" in done.stdout
    assert "warning:" in done.stdout


def test_isolation_that_can_not_be_had_is_refused_and_a_wrong_name_is_named(sideband, hello):
    done = sideband("call", "hello.greet", "name=a", "--skill-dir", hello, "--isolation", "fuul", "--json")
    assert (done.returncode, error_of(done)["code"]) == (5, "config.invalid")
    assert "full" in error_of(done)["message"]
    done = sideband(
        "call", "hello.greet", "name=a", "--skill-dir", hello, "--json", SIDEBAND_POLICY__DENY='{"sandbox" = "gone"}'
    )
    assert (done.returncode, error_of(done)["code"]) == (3, "isolation.unavailable")


def test_secrets_are_stored_listed_and_deleted_and_never_shown(sideband, tmp_path):
    assert sideband("secrets", "set", "forge", "--origin", "https://forge.test", stdin="canary-value\n").returncode == 0
    listed = sideband("secrets", "list")
    assert "forge" in listed.stdout
    assert "https://forge.test" in listed.stdout
    assert sideband("secrets", "delete", "forge").returncode == 0
    assert "forge" not in sideband("secrets", "list").stdout
    for file in (tmp_path / "home").rglob("*"):
        assert not file.is_file() or b"canary-value" not in file.read_bytes()


def test_an_empty_secret_is_refused(sideband):
    done = sideband("secrets", "set", "forge", stdin="\n")
    assert done.returncode == 2


def test_a_tampered_ledger_is_found_and_ends_with_1(sideband, tmp_path):
    sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db")
    assert sideband("audit", "verify").returncode == 0
    (segment,) = (tmp_path / "home" / "ledger").glob("*.jsonl")
    segment.write_text(segment.read_text().replace("CREATE TABLE t", "CREATE TABLE x"))
    done = sideband("audit", "verify", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"]


def test_an_effect_is_explained_from_who_asked_to_how_it_ended(sideband):
    sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db")
    (effect,) = json.loads(sideband("audit", "query", "--op", "sql", "--json").stdout)
    text = sideband("audit", "why", effect["effect"]).stdout
    for part in ("sql.execute, done", "asked by", "CREATE TABLE", "allowed by  sql", "intent", "outcome"):
        assert part in text


def test_a_refused_effect_is_explained_with_the_rights_that_were_held_and_the_remedy(sideband):
    sideband("op", "sql.query", "sql=SELECT 1", "db=x.db", "--grant", "sql:path=y.db")
    (effect,) = json.loads(sideband("audit", "query", "--status", "denied", "--json").stdout)
    text = sideband("audit", "why", effect["effect"]).stdout
    for part in ("held        sql:path=y.db", "hint        grant it"):
        assert part in text
    assert "allowed by" not in text


def test_times_of_the_ledger_are_local_with_the_offset_and_can_be_given_back(sideband):
    sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db")
    time = next(word for word in sideband("audit", "query", TZ="XYZ-3").stdout.split() if word.endswith("+03:00"))
    assert len(json.loads(sideband("audit", "query", "--since", time, "--json").stdout)) == 1
    assert json.loads(sideband("audit", "query", "--until", time, "--json").stdout) == []


def test_settings_come_from_five_layers_and_doctor_names_each_source(sideband, tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (home / "sideband.toml").write_text("[policy]\ntimeout = 1\nstrict = false\n")
    (project / "sideband.toml").write_text("[policy]\ntimeout = 2\n")

    def effective(*words, **environment):
        data = json.loads(sideband("doctor", "--json", *words, folder=project, **environment).stdout)
        (found,) = [one for one in data["settings"] if one["key"] == "policy.timeout"]
        return found["value"], found["source"].rpartition("/")[2], data["notices"]

    value, _, notices = effective()
    assert value == 1
    assert "is not trusted" in notices[0]
    assert effective("--trust")[:2] == (2, "sideband.toml")
    assert effective()[0] == 2
    (project / "sideband.toml").write_text("[policy]\ntimeout = 3\n")
    assert effective()[0] == 1
    assert effective(SIDEBAND_POLICY__TIMEOUT="4")[:2] == (4, "SIDEBAND_POLICY__TIMEOUT")
    assert effective("--set", "policy.timeout=5", SIDEBAND_POLICY__TIMEOUT="4")[:2] == (5, "flag")


def test_a_setting_that_can_not_be_used_names_key_value_and_file(sideband, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sideband.toml").write_text("[plugins.http]\nmax_connections = 'many'\n")
    done = sideband("op", "http.get", "url=http://127.0.0.1:9/", "--json")
    assert error_of(done)["code"] in ("config.invalid", "op.unknown")
    for part in ("plugins.http.max_connections", "many", "sideband.toml"):
        assert part in error_of(done)["message"]


@pytest.fixture
def at_terminal(tmp_path):
    """The command line with a person, who answers the first question."""

    def run(*words, answer=b""):
        terminal, inside = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", AT_TERMINAL, *map(str, words)],
            stdin=inside,
            stdout=subprocess.PIPE,
            stderr=inside,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SIDEBAND_HOME": str(tmp_path / "home")},
            start_new_session=True,
        )
        os.close(inside)
        shown = b""
        while part := read_terminal(terminal):
            shown += part
            if answer and re.search(rb"(\[y/N\]|value of .*:) $", shown):
                os.write(terminal, answer)
                answer = b""
        output = process.communicate(timeout=60)[0].decode()
        os.close(terminal)
        return process.returncode, output, shown.decode()

    return run


# The terminal has to be the session's own for Ctrl-C to be a signal.
AT_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from sideband.__main__ import main
sys.exit(main())
"""


def read_terminal(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody is at its other end any more
        return b""


def test_a_terminal_is_asked_for_a_grant_and_the_answer_is_remembered(at_terminal, make_skill):
    words = [
        "call",
        "asker.go",
        "name=Ada",
        "--skill-dir",
        make_skill("asker", HELLO.replace("greet", "go"), "sql:path=x.db"),
    ]
    assert at_terminal(*words, answer=b"n\n")[:2] == (3, "")
    assert at_terminal(*words, answer=b"\x04")[:2] == (3, "")
    assert at_terminal(*words, answer=b"y\n")[:2] == (0, "hello Ada\n")
    assert at_terminal(*words)[:2] == (0, "hello Ada\n")


def test_a_question_can_be_interrupted_and_that_is_data_too(at_terminal, make_skill):
    words = [
        "call",
        "asker.go",
        "name=Ada",
        "--skill-dir",
        make_skill("asker", HELLO.replace("greet", "go"), "sql:path=x.db"),
    ]
    code, output, _ = at_terminal(*words, "--json", answer=b"\x03")
    assert (code, json.loads(output)["error"]["code"]) == (130, "interrupted")


def test_a_secret_is_asked_for_only_under_a_name_that_it_can_have(at_terminal):
    code, _, shown = at_terminal("secrets", "set", "bad name", answer=b"value\n")
    assert code == 2
    assert "lower-case letters" in shown
    assert "value of" not in shown
    code, _, shown = at_terminal("secrets", "set", "forge", answer=b"\x04")
    assert code == 2
    assert "the value is empty" in shown


@pytest.fixture
def site(tmp_path):
    """Writes distributions that a process finds on its path."""
    folder = tmp_path / "site"
    folder.mkdir()

    def make(distribution, module, code, group, name):
        (folder / f"{module}.py").write_text(code)
        info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")
        return folder

    return make


def test_plugins_that_can_not_be_used_are_listed_with_the_reason_and_the_rest_works(sideband, site):
    site("bad-import", "bad_import", "raise RuntimeError('no luck')", "sideband.v1.hook", "bad-import")
    hookimpl = "from sideband import hookimpl\n@hookimpl\n"
    site("bad-hook", "bad_hook", f"{hookimpl}def tool_cal(event): pass", "sideband.v1.hook", "bad-hook")
    path = site("bad-argument", "bad_arg", f"{hookimpl}def input(evnt): pass", "sideband.v1.hook", "bad-argument")
    records = json.loads(sideband("plugins", "list", "--json", PYTHONPATH=str(path)).stdout)
    reasons = {record["name"]: record["reason"] for record in records if record["state"] == "failed"}
    assert "no luck" in reasons["bad-import"]
    assert "tool_call" in reasons["bad-hook"]
    assert "evnt" in reasons["bad-argument"]
    assert sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db", PYTHONPATH=str(path)).returncode == 0


def test_doctor_and_check_import_all_plugins_and_say_in_full_what_is_wrong_once(sideband, site):
    site("bad-op", "bad_op", "raise RuntimeError('it has ' + 'quite ' * 30 + 'bad luck')", "sideband.v1.op", "bad")
    path = site("other-sql", "other_sql", "", "sideband.v1.op", "sql")
    doctor = json.loads(sideband("doctor", "--json", PYTHONPATH=str(path)).stdout)
    assert len([problem for problem in doctor["problems"] if "other-sql" in problem]) == 1
    assert len([problem for problem in doctor["problems"] if "bad luck" in problem]) == 1
    check = sideband("plugins", "check", PYTHONPATH=str(path), COLUMNS="60")
    assert check.returncode == 5
    assert "quite bad luck" in " ".join(check.stdout.split())
    assert check.stdout.count("is provided by") == 1


def test_two_packages_with_one_op_family_are_an_error_that_names_both(sideband, site):
    path = site("other-sql", "other_sql", "", "sideband.v1.op", "sql")
    done = sideband("op", "sql.query", "sql=SELECT 1", "db=x.db", "--json", PYTHONPATH=str(path))
    assert "other-sql" in error_of(done)["message"]
    assert "sideband-sql" in error_of(done)["message"]
    chosen = sideband(
        "op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db", PYTHONPATH=str(path),
        SIDEBAND_POLICY__CONFLICTS='{"op.sql" = "sideband-sql"}',
    )  # fmt: skip
    assert chosen.returncode == 0, chosen.stderr


def test_a_command_of_another_package_works_and_a_clash_names_both(sideband, site):
    code = (
        "from sideband.commands import Command\n"
        "def run(arguments):\n    print('hi', arguments.name)\n    return 7\n"
        "def sideband_commands():\n"
        "    return Command('greet', 'Greet.', lambda parser: parser.add_argument('name'), run)\n"
    )
    path = site("greeter", "greeter", code, "sideband.v1.command", "greet")
    done = sideband("greet", "Bo", PYTHONPATH=str(path))
    assert (done.returncode, done.stdout) == (7, "hi Bo\n")
    assert "greet" in sideband("--help", PYTHONPATH=str(path)).stdout
    site("other-cli", "other_cli", "", "sideband.v1.command", "op")
    clash = sideband("op", "sql.query", "--json", PYTHONPATH=str(path))
    assert clash.returncode == 5
    assert "other-cli" in error_of(clash)["message"]
    assert "sideband-cli" in error_of(clash)["message"]


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        ("raise TypeError('of ours')", "internal", "TypeError: of ours"),
        ("open('/nowhere/file')", "os", "/nowhere/file"),
        ("raise ExceptionGroup('', [UsageError('alone')])", "usage", "alone"),
    ],
)
def test_whatever_ends_a_command_is_one_readable_error(sideband, site, end, code, message):
    path = site(
        "breaker",
        "breaker",
        "from sideband import UsageError\nfrom sideband.commands import Command\n"
        f"def run(arguments):\n    {end}\n"
        "def sideband_commands():\n"
        "    def configure(parser):\n        parser.add_argument('--json', action='store_true')\n"
        "    return Command('break', 'Break.', configure, run)\n",
        "sideband.v1.command",
        "break",
    )
    done = sideband("break", PYTHONPATH=str(path))
    assert f"{message} [{code}]" in done.stderr.replace(": No such file or directory", "")
    assert "Traceback" not in done.stderr
    done = sideband("break", "--json", PYTHONPATH=str(path), SIDEBAND_DEBUG="1")
    assert error_of(done)["code"] == code
    assert "Traceback" in done.stderr


def test_a_command_that_may_not_load_names_the_line_that_says_so(sideband):
    done = sideband("op", "sql.query", SIDEBAND_POLICY__ONLY='["op.sql"]')
    assert "`policy.only` (SIDEBAND_POLICY__ONLY)" in done.stderr


def test_the_stubs_can_be_imported(sideband, tmp_path):
    assert sideband("sdk", "stubs", tmp_path / "stubs").returncode == 0
    command = [sys.executable, "-c", "import sideband_sdk.http, sideband_sdk.sql; print(sideband_sdk.__file__)"]
    done = subprocess.run(command, cwd=tmp_path / "stubs", capture_output=True, text=True, check=True)
    assert str(tmp_path) in done.stdout


def test_an_index_that_was_made_before_a_package_came_is_not_believed(sideband, site):
    sideband("plugins", "list")
    path = site("late", "late_plugin", "", "sideband.v1.op", "late")
    assert "late" in sideband("plugins", "list", PYTHONPATH=str(path)).stdout


def test_output_that_nobody_reads_any_more_is_no_error(tmp_path):
    command = f"{sys.executable} -m sideband hooks list | head -n 1"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, env=environment)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", ">/dev/full", "2>/dev/full", ">&- 2>&- <&-"])
@pytest.mark.parametrize("words", ["hooks list", "frobnicate"])
def test_streams_that_are_closed_or_full_are_no_defect(tmp_path, words, redirection):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = f"{sys.executable} -m sideband {words} {redirection}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == (2 if words == "frobnicate" else int(redirection == ">/dev/full"))
    for sign in ("Traceback", "Exception ignored", "internal"):
        assert sign not in done.stderr


def test_a_ledger_whose_stored_head_was_lost_is_not_called_whole(sideband, tmp_path):
    import shutil

    sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db")
    shutil.rmtree(tmp_path / "home" / "store")
    assert sideband("audit", "verify").returncode == 1
    sideband("op", "sql.execute", "sql=CREATE TABLE u (a)", "db=t.db")
    text = sideband("audit", "verify").stdout
    assert "is whole" not in text
    assert "note:" in text
