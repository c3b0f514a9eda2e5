"""The command line as a process: exit codes, errors, settings and their sources."""

import json
import os
import pty
import re
import select
import subprocess
import sys

import pytest

HELLO = "from sideband.skill import sql, tool\n@tool\nasync def greet(name: str) -> str:\n    return f'hello {name}'\n"


@pytest.fixture
def hello(make_skill):
    return make_skill("hello", HELLO)


def error_of(done):
    return json.loads(done.stdout)["error"]


def test_call_prints_its_result_and_exits_with_0(sideband_process, hello):
    done = sideband_process("call", "hello.greet", "name=Ada", "--skill-dir", hello)
    assert (done.returncode, done.stdout) == (0, "hello Ada\n")


def test_call_as_json_contains_result_isolation_and_effects(sideband, hello):
    data = json.loads(sideband("call", "hello.greet", "name=Ada", "--skill-dir", hello, "--json").stdout)
    assert data["output"] == "hello Ada"
    assert data["tool"] == "hello.greet"
    assert data["isolation"] in ("full", "no-namespaces")
    assert data["effects"] == []


def test_options_are_accepted_between_a_tool_and_its_values(sideband, hello):
    assert sideband("call", "hello.greet", "--skill-dir", hello, "name=Ada").stdout == "hello Ada\n"


def test_effects_that_a_repeated_call_does_not_request_again_are_reported(sideband, make_skill):
    code = (
        "from sideband.skill import sql, tool\n@tool\nasync def keep(table: str) -> None:\n"
        "    await sql.execute('CREATE TABLE IF NOT EXISTS shared (a)', db='test.db')\n"
        "    await sql.execute(f'CREATE TABLE {table} (a)', db='test.db')\n"
    )
    call = [
        "call",
        "keeper.keep",
        "--skill-dir",
        make_skill("keeper", code),
        "--only",
        "sql:path=test.db",
        "--key",
        "k",
    ]
    first = json.loads(sideband(*call, "table=one", "--json").stdout)
    again = json.loads(sideband(*call, "table=two", "--json").stdout)
    (shared, one) = (effect["id"] for effect in first["effects"])
    assert (first["answered"], first["skipped"]) == ([], [])
    assert (again["answered"], again["skipped"]) == ([shared], [one])
    assert f"not requested again: {one}" in sideband(*call, "table=three").stderr


def test_characters_outside_the_encoding_are_escaped(sideband, hello):
    words = ["call", "hello.greet", "name=Zoë", "--skill-dir", hello]
    assert sideband(*words, PYTHONIOENCODING="ascii").stdout == "hello Zo\\xeb\n"
    assert json.loads(sideband(*words, "--json", PYTHONIOENCODING="ascii").stdout)["output"] == "hello Zoë"


def test_arguments_are_read_from_standard_input(sideband, hello):
    done = sideband("call", "hello.greet", "--input", "-", "--skill-dir", hello, stdin='{"name": "Bo"}')
    assert done.stdout == "hello Bo\n"


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (["call", "unknown.tool"], "tool.unknown", 2),
        (["call", "hello.greet"], "call.arguments", 2),
        (["call", "hello.greet", "nme=Ada"], "call.arguments", 2),
        (["call", "hello.greet", "name"], "usage", 2),
        (["op", "no.op"], "op.unknown", 2),
        (["op", "sql.query"], "op.params", 2),
        (["op", "sql.query", "sql=SELECT 1", "db=x.db", "--grant", "sql:pth=x"], "capability.invalid", 2),
        (["op", "sql.query", "sql=SELECT 1", "db=x.db", "--grant", "sql:path=y.db"], "op.denied", 3),
        (["op", "sql.query", "sql=SELECT 1", "db=x.db"], "sql.missing", 1),
        (["op", "sql.query", "sql=SELECT 1", "db=x.db", "--set", "policy.timeout=-1"], "config.invalid", 5),
        (["audit", "why", "nothing"], "effect.missing", 2),
        (["frobnicate"], "usage", 2),
        (["call", "hello.greet", "name=Ada", "--timeout", "nan"], "usage", 2),
        (["audit", "tail", "-n", "-1"], "usage", 2),
        (["audit", "query", "--limit", "0"], "usage", 2),
        (["audit", "query", "--since", "yesterday"], "usage", 2),
        (["audit", "query", "--status", "finished"], "usage", 2),
    ],
)
def test_failure_has_its_code_and_exit_code(sideband, hello, words, code, exit_code):
    options = ["--skill-dir", hello] if words[0] == "call" else []
    done = sideband(*words, *options, "--json")
    assert done.returncode == exit_code, done.stderr
    assert error_of(done)["code"] == code
    assert "Traceback" not in done.stderr


def test_error_as_text_goes_to_standard_error_with_a_hint(sideband):
    done = sideband("op", "sql.qery", "sql=SELECT 1")
    assert done.stdout == ""
    assert "did you mean `sql.query`" in done.stderr


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["ops", "show", "sqll.query"], "sql.query"),
        (["skills", "show", "demmo"], "demo"),
        (["skills", "show", "demo.havest"], "demo.harvest"),
        (["skills", "install", "demmo"], "demo"),
    ],
)
def test_misspelled_name_of_an_op_family_skill_or_tool_is_corrected(sideband, words, name):
    done = sideband(*words)
    assert (done.returncode, f"did you mean `{name}`" in done.stderr) == (2, True)
    assert "hint:" in done.stderr


def test_exit_code_is_1_for_a_skill_that_raises_and_4_for_a_worker_that_crashes(sideband, make_skill):
    skill = make_skill(
        "bad",
        "import os\nfrom sideband.skill import tool\n@tool\nasync def fail() -> None:\n    raise ValueError('no')\n"
        "@tool\nasync def die() -> None:\n    os._exit(1)\n",
    )
    assert sideband("call", "bad.fail", "--skill-dir", skill).returncode == 1
    assert sideband("call", "bad.die", "--skill-dir", skill).returncode == 4


def test_traceback_of_a_skill_is_shown_without_control_characters(sideband, make_skill):
    raises = "raise ValueError('\\x1b[31mred\\u202eder')"
    code = f"from sideband.skill import tool\n@tool\nasync def fail() -> None:\n    {raises}\n"
    done = sideband("call", "bad.fail", "--skill-dir", make_skill("bad", code))
    assert "tools.py:4 in fail" in done.stderr.partition("error:")[0]
    assert not {"\x1b", "\u202e"} & set(done.stderr)


def test_hint_about_a_skill_includes_the_skill_folders(sideband, hello):
    assert (
        f"`sideband skills show hello.greet --skill-dir {hello}`"
        in sideband("call", "hello.greet", "--skill-dir", hello).stderr
    )
    for words in (["call", "hello.greet"], ["skills", "show", "hello.greet"]):
        assert "`--skill-dir DIR`" in sideband(*words).stderr


def test_loaded_skill_is_listed_with_its_warnings(sideband, hello):
    done = sideband("skills", "list", "--skill-dir", hello)
    assert re.search("`greet`.* docstring", done.stdout)
    assert "warning:" in done.stdout


def test_unavailable_isolation_is_refused_and_an_unknown_tier_is_an_error(sideband, hello):
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


def test_empty_secret_is_refused(sideband):
    done = sideband("secrets", "set", "forge", stdin="\n")
    assert done.returncode == 2


def test_verify_detects_a_changed_entry_and_exits_with_1(sideband, tmp_path):
    sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db")
    assert sideband("audit", "verify").returncode == 0
    (segment,) = (tmp_path / "home" / "ledger").glob("*.jsonl")
    segment.write_text(segment.read_text().replace("CREATE TABLE t", "CREATE TABLE x"))
    done = sideband("audit", "verify", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"]


def test_effect_is_explained_from_its_caller_to_its_outcome(sideband):
    sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db")
    (effect,) = json.loads(sideband("audit", "query", "--op", "sql", "--json").stdout)
    text = sideband("audit", "why", effect["effect"]).stdout
    for part in ("sql.execute, done", "caller", "CREATE TABLE", "allowed by  sql", "intent", "outcome"):
        assert part in text


def test_denied_effect_is_explained_with_its_grant_and_a_hint(sideband):
    sideband("op", "sql.query", "sql=SELECT 1", "db=x.db", "--grant", "sql:path=y.db")
    (effect,) = json.loads(sideband("audit", "query", "--status", "denied", "--json").stdout)
    text = sideband("audit", "why", effect["effect"]).stdout
    for part in ("held        sql:path=y.db", "hint        "):
        assert part in text
    assert "allowed by" not in text


def test_ledger_times_are_local_with_an_offset_and_accepted_by_since_and_until(sideband):
    sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db")
    time = next(word for word in sideband("audit", "query", TZ="XYZ-3").stdout.split() if word.endswith("+03:00"))
    assert len(json.loads(sideband("audit", "query", "--since", time, "--json").stdout)) == 1
    assert json.loads(sideband("audit", "query", "--until", time, "--json").stdout) == []


def test_doctor_names_the_source_of_each_setting_layer(sideband, tmp_path):
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
    assert effective("--set", "policy.timeout=5", SIDEBAND_POLICY__TIMEOUT="4")[:2] == (5, "command line")


def test_invalid_setting_error_names_key_value_and_file(sideband, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sideband.toml").write_text("[plugins.http]\nmax_connections = 'many'\n")
    done = sideband("op", "http.get", "url=http://127.0.0.1:9/", "--json")
    assert error_of(done)["code"] in ("config.invalid", "op.unknown")
    for part in ("plugins.http.max_connections", "many", "sideband.toml"):
        assert part in error_of(done)["message"]


@pytest.fixture
def at_terminal(tmp_path, command_server):
    """Return a function that runs the command line at a terminal and answers its first question."""

    def run(*words, answer=b""):
        terminal, inside = pty.openpty()
        reader, writer = os.pipe()
        process = command_server.start(
            [str(word) for word in words],
            streams=[inside, writer, inside],
            folder=tmp_path,
            environment={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SIDEBAND_HOME": str(tmp_path / "home")},
            terminal=True,
        )
        os.close(inside)
        os.close(writer)
        shown = b""
        while part := read_terminal(terminal):
            shown += part
            if answer and re.search(rb"(\[y/(s/)?(a/)?N\]|value of .*:) $", shown):
                os.write(terminal, answer)
                answer = b""
        with os.fdopen(reader) as stream:
            output = stream.read()
        os.close(terminal)
        return process.wait(60), output, shown.decode()

    return run


def read_terminal(terminal):
    ready, _, _ = select.select([terminal], [], [], 60)
    assert ready, "the command shows nothing more and does not end"
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


def test_grant_is_requested_at_the_terminal_and_remembered(at_terminal, make_skill):
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
    assert at_terminal(*words, answer=b"a\n")[:2] == (0, "hello Ada\n")
    assert at_terminal(*words)[:2] == (0, "hello Ada\n")


def test_interrupted_question_is_an_error_as_data(at_terminal, make_skill):
    words = [
        "call",
        "asker.go",
        "name=Ada",
        "--skill-dir",
        make_skill("asker", HELLO.replace("greet", "go"), "sql:path=x.db"),
    ]
    code, output, _ = at_terminal(*words, "--json", answer=b"\x03")
    assert (code, json.loads(output)["error"]["code"]) == (130, "interrupted")


def test_secret_name_is_validated_before_the_value_is_requested(at_terminal):
    code, _, shown = at_terminal("secrets", "set", "bad name", answer=b"value\n")
    assert code == 2
    assert "lower-case letters" in shown
    assert "value of" not in shown
    code, _, shown = at_terminal("secrets", "set", "forge", answer=b"\x04")
    assert code == 2
    assert "the value is empty" in shown


def test_sdk_stubs_can_be_imported(sideband, tmp_path):
    assert sideband("sdk", "stubs", tmp_path / "stubs").returncode == 0
    command = [sys.executable, "-c", "import sideband_sdk.http, sideband_sdk.sql; print(sideband_sdk.__file__)"]
    done = subprocess.run(command, cwd=tmp_path / "stubs", capture_output=True, text=True, check=True)
    assert str(tmp_path) in done.stdout


def test_closed_output_pipe_is_not_an_error(tmp_path):
    command = f"{sys.executable} -m sideband hooks list | head -n 1"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, env=environment)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", ">/dev/full", "2>/dev/full", ">&- 2>&- <&-"])
@pytest.mark.parametrize("words", ["hooks list", "frobnicate"])
def test_closed_or_full_streams_cause_no_internal_error(tmp_path, words, redirection):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = f"{sys.executable} -m sideband {words} {redirection}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == (2 if words == "frobnicate" else int(redirection == ">/dev/full"))
    for sign in ("Traceback", "Exception ignored", "internal"):
        assert sign not in done.stderr


def test_ledger_without_its_stored_head_is_not_reported_as_intact(sideband, tmp_path):
    import shutil

    sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db")
    shutil.rmtree(tmp_path / "home" / "store")
    assert sideband("audit", "verify").returncode == 1
    sideband("op", "sql.execute", "sql=CREATE TABLE u (a)", "db=t.db")
    text = sideband("audit", "verify").stdout
    assert "is intact" not in text
    assert "note:" in text


def test_type_checker_finds_the_families_of_stubs_in_the_sdk(sideband, tmp_path):
    assert sideband("sdk", "stubs", tmp_path).returncode == 0
    (tmp_path / "tools.py").write_text(
        "from sideband.skill import sql, tool, unknown\n\n@tool\nasync def count(db: str) -> int:\n"
        '    """Count."""\n'
        '    found = await sql.query("SELECT 1", db=db)\n'
        "    await sql.nope()\n"
        '    await sql.query("SELECT 1", dbb=db)\n'
        "    await unknown.anything()\n"
        "    async for row in sql.rows('SELECT 1', db=db):\n"
        "        return int(row['n'])\n"
        "    return len(found)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "tools.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if "error:" in line and not line.startswith("Found")]
    assert ["tools.py:7" in errors[0], "tools.py:8" in errors[1]] == [True, True]
    assert len(errors) == 2


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (30, ["▌ error: `agent` is not a", "▌   setting [usage]"]),
        (41, ["▌ error: `agent` is not a setting [usage]"]),
    ],
)
def test_error_is_broken_between_words_at_a_terminal(terminal, columns, rows):
    run = terminal("config", "set", "agent", "x", columns=columns)
    assert run.wait() == 2
    assert run.text.splitlines()[: len(rows)] == rows


def test_word_longer_than_the_terminal_can_be_copied(terminal, tmp_path):
    path = "x" * 50
    run = terminal("config", "get", path, columns=40)
    assert run.wait() == 2
    assert f"`{path}`" in run.text.replace("\n", "")


def test_error_in_a_pipe_is_one_line(sideband):
    assert sideband("config", "get", "x" * 30, COLUMNS="20").stderr.splitlines()[0].endswith("[usage]")
